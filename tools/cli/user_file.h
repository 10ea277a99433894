// SPDX-License-Identifier: Apache-2.0
// A small file of the user's own: closed to others, and replaced as a whole. It lies in
// $XDG_CONFIG_HOME/nacre or ~/.config/nacre; where nothing may be kept there (own_files.h), in
// /var/tmp/nacre-UID.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// The folders of this user: the first takes what is kept, and what lies in the others counts as
// well. At least one; missing (with the reason) when there is no place for one.
Result<std::vector<std::string>> user_folders();

enum class Durability : std::uint8_t {
  synced,  // after a crash the file is old or new
  left_to_system,
};

class UserFile {
 public:
  explicit UserFile(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // Empty when there is none. invalid_argument when it is no file or too large.
  Result<std::string> read() const;
  // Makes the folder where it is missing; nobody else changes the file between what change is given
  // and what it gives back. Its error leaves the file alone.
  Result<> replace(const std::function<Result<std::string>(const std::string& content)>& change,
                   Durability durability) const;

 private:
  std::string path_;
};

// In one word without blanks or controls; with_ascii_alone: in ASCII.
std::string escape_path(std::string_view path, bool with_ascii_alone);
std::string unescape_path(std::string_view text);

}  // namespace nacre::tools
