// SPDX-License-Identifier: Apache-2.0
// The user's list of volumes, as ssh keeps one of hosts: which volume was found at which path when
// it was first used there. A volume that somebody puts in its place, or whose key somebody
// replaces, is refused from then on. docs/SECURITY.md, "Fingerprints".
//
// File: $XDG_CONFIG_HOME/nacre/known_volumes, else ~/.config/nacre/known_volumes. One line a path:
//   PATH VOLUME-ID FINGERPRINT
// separated by spaces; in PATH, spaces, newlines and backslashes are written as \ooo. Lines that
// begin with '#' are kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"

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
  // The file of this user; missing (with the reason) when there is no place for one.
  static Result<KnownVolumes> of_user();
  explicit KnownVolumes(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }

  // not_permitted, with the line to remove and what it may mean, when the path is known with
  // another volume; fingerprint empty: only the id is compared (before a key is there). True when
  // the volume is known.
  Result<bool> check(const KnownVolume& volume) const;
  // Adds or replaces the path's line. After a crash the file is old or new.
  Result<> pin(const KnownVolume& volume) const;

  static std::string to_line(const KnownVolume& volume);
  static std::optional<KnownVolume> from_line(std::string_view line);

 private:
  Result<std::vector<std::string>> read_lines() const;
  std::string file_;
};

}  // namespace nacre::tools
