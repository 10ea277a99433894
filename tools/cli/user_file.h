// SPDX-License-Identifier: Apache-2.0
// A small file of the user's: closed to others, and replaced as a whole. It lies in
// $XDG_CONFIG_HOME/nacre or ~/.config/nacre, or, if nothing may be kept there (own_files.h), in
// /var/tmp/nacre-UID.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// The folders of this user, at least one. New files go into the first; files in the others count as
// well. Error: missing (with the reason) if there is no place for a folder.
Result<std::vector<std::string>> user_folders();

enum class Durability : std::uint8_t {
  synced,  // after a crash the file is the old or the new one
  left_to_system,
};

class UserFile {
 public:
  explicit UserFile(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // The content; empty if there is no file. Error: invalid_argument if it is no file or too large.
  Result<std::string> read() const;
  // Replaces the content by what change makes of it. Other programs cannot change the file
  // meanwhile. Makes the folder if it is missing. If change fails, the file stays as it is.
  Result<> replace(const std::function<Result<std::string>(const std::string& content)>& change,
                   Durability durability) const;

 private:
  std::string path_;
};

// Escapes the text into one word without blanks or control characters; with_ascii_alone: in ASCII.
std::string escape_path(std::string_view path, bool with_ascii_alone);
std::string unescape_path(std::string_view text);

}  // namespace nacre::tools
