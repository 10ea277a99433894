// SPDX-License-Identifier: Apache-2.0
// The user's list of volumes, like ssh's list of hosts. It says which volume was found at which
// path when it was first used there. If another volume is put there, or if the volume's key was
// replaced, the volume is refused. A replaced key is noticed also at other paths, because a volume
// is known by its id as well. nacre(1), "Known volumes".
//
// File: $XDG_CONFIG_HOME/nacre/known_volumes, else ~/.config/nacre/known_volumes. If nothing may
// be kept there (own_files.h): /var/tmp/nacre-UID/known_volumes. One line for each path:
//   PATH VOLUME-ID FINGERPRINT [format-2] [next=FINGERPRINT]
// separated by spaces; in PATH, spaces, newlines and backslashes are written as \ooo. Lines that
// begin with '#' are kept. If several lines have one id, the last has the newest fingerprint. So a
// line that is added or changed goes to the end, except one with a copy's older key (pin_copy()).
// "format-2" says that the volume was of format 2 when it was used with that key. It never becomes
// one of format 1 again.
// "next=" is the key that a rotation on this machine was about to bring. It is there before the new
// keyring is, so a crash in between leaves a volume that is known by either key. The next mount
// for writing tells which one that is, and "next=" goes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "tools/cli/user_file.h"

namespace nacre::tools {

// Takes 64 hexadecimal digits of either case and returns them in lower case. Error:
// invalid_argument.
Result<std::string> parse_fingerprint(std::string_view text);

struct KnownVolume {
  std::string path;  // absolute
  std::string volume_id;
  std::string fingerprint;
  bool is_format_2 = false;
  std::string next_fingerprint;  // empty: none

  bool has_key(std::string_view fingerprint_of_key) const {
    return fingerprint == fingerprint_of_key ||
           (!next_fingerprint.empty() && next_fingerprint == fingerprint_of_key);
  }
};

class KnownVolumes {
 public:
  // The files of this user. The first one takes what is pinned, and none of them may know another
  // volume. Errors as of user_folders().
  static Result<std::vector<KnownVolumes>> of_user();
  explicit KnownVolumes(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_.path(); }

  struct Acquaintance {
    bool is_known = false;
    // The other path by whose line the volume is known, because the line of this path has an
    // earlier fingerprint or is missing. pin() then notes this path.
    std::string other_path;
    // True if the volume would have been refused, but the user named the fingerprint. pin_copy()
    // then notes this path.
    bool has_another_key = false;
    // The line by which the volume is known says format 2.
    bool was_format_2 = false;
  };
  // Error: not_permitted, with the line to remove and what it may mean, if the path is known with
  // another volume, or the volume's id with another key. If fingerprint is empty, only the path's
  // id is compared, because no key is there yet. is_named: the user named this fingerprint. Then a
  // path without a line may have it although the id is known with another one.
  Result<Acquaintance> check(const KnownVolume& volume, bool is_named = false) const;
  // Adds or replaces the path's line. After a crash the file is the old or the new one.
  Result<> pin(const KnownVolume& volume) const;
  // The same, but in front of the other lines of its id, so that their fingerprint stays the
  // newest.
  Result<> pin_copy(const KnownVolume& volume) const;
  // Notes in the path's line, where it stands, that the volume is of format 2.
  Result<> note_format_2(const KnownVolume& volume) const;
  // Notes in the line of volume.path, where it stands, that the volume may have the key of
  // volume.next_fingerprint soon. volume.fingerprint is the one that it has. If the path has no
  // line, it gets one.
  Result<> note_next(const KnownVolume& volume) const;
  // Called once it is certain that the volume has volume.fingerprint. If the path's line has that
  // as its next one, it becomes the only one, as by pin(). If the line has another next one, that
  // goes. Otherwise nothing is written.
  Result<> settle_next(const KnownVolume& volume) const;

  static std::string to_line(const KnownVolume& volume);
  static std::optional<KnownVolume> from_line(std::string_view line);

 private:
  enum class Place : std::uint8_t { end, front_of_id, as_before };
  Result<std::optional<KnownVolume>> line_of(std::string_view path) const;
  Result<> write_line(const KnownVolume& volume, Place place) const;
  UserFile file_;
};

}  // namespace nacre::tools
