// SPDX-License-Identifier: Apache-2.0
// The user's list of volumes, as ssh keeps one of hosts: which volume was found at which path when
// it was first used there. A volume that somebody puts in its place, or whose key somebody
// replaces, is refused from then on; the latter also at other paths, since a volume is known by its
// id as well. nacre(1), "Known volumes".
//
// File: $XDG_CONFIG_HOME/nacre/known_volumes, else ~/.config/nacre/known_volumes; where nothing may
// be kept there (own_files.h), /var/tmp/nacre-UID/known_volumes. One line a path:
//   PATH VOLUME-ID FINGERPRINT
// separated by spaces; in PATH, spaces, newlines and backslashes are written as \ooo. Lines that
// begin with '#' are kept. Of several lines with one id the last has the newest fingerprint: a line
// that is added or changed goes to the end, but for one that says a copy's older key (pin_copy()).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "tools/cli/user_file.h"

namespace nacre::tools {

// 64 hexadecimal digits, of either case; in lower case then. invalid_argument.
Result<std::string> parse_fingerprint(std::string_view text);

struct KnownVolume {
  std::string path;  // absolute
  std::string volume_id;
  std::string fingerprint;
};

class KnownVolumes {
 public:
  // The files of this user: the first takes what is pinned, and none of them may know another
  // volume. The errors of user_folders().
  static Result<std::vector<KnownVolumes>> of_user();
  explicit KnownVolumes(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_.path(); }

  struct Acquaintance {
    bool is_known = false;
    // Known by the line of this other path: the volume's own has an earlier fingerprint, or is not
    // there. pin() then notes this path.
    std::string other_path;
    // Of the refusal that was left out, since somebody named the fingerprint: pin_copy() then notes
    // this path.
    bool has_another_key = false;
  };
  // not_permitted, with the line to remove and what it may mean, when the path is known with
  // another volume, or its key is not the one that the volume's id is known with; fingerprint
  // empty: only the path's id is compared (before a key is there). is_named: somebody named this
  // fingerprint as that of the volume which is meant; then a path without a line may have it though
  // the id is known with another.
  Result<Acquaintance> check(const KnownVolume& volume, bool is_named = false) const;
  // Adds or replaces the path's line. After a crash the file is old or new.
  Result<> pin(const KnownVolume& volume) const;
  // The same in front of the other lines of its id: their fingerprint stays the newest.
  Result<> pin_copy(const KnownVolume& volume) const;

  static std::string to_line(const KnownVolume& volume);
  static std::optional<KnownVolume> from_line(std::string_view line);

 private:
  Result<> write_line(const KnownVolume& volume, bool in_front) const;
  UserFile file_;
};

}  // namespace nacre::tools
