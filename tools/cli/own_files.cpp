// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/own_files.h"

#include <dirent.h>

#include <filesystem>
#include <memory>
#include <string_view>

namespace nacre::tools {

namespace {

std::string& folder_left_alone() {
  static std::string folder;
  return folder;
}

bool is_empty_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(path.c_str()), ::closedir);
  if (!stream) return false;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return false;
  }
  return true;
}

}  // namespace

void leave_alone(const std::string& mountpoint) {
  folder_left_alone() = mountpoint;
}

bool lies_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder.ends_with('/') ? folder : folder + "/");
}

bool may_keep_files(const std::string& home, const std::string& base) {
  if (!folder_left_alone().empty()) {
    std::error_code error;
    const std::string lexical = std::filesystem::path(base).lexically_normal();
    if (lies_below(lexical, folder_left_alone())) return false;
    const std::string resolved = std::filesystem::weakly_canonical(base, error);
    if (!error && lies_below(resolved, folder_left_alone())) return false;
  }
  return home.empty() || !is_empty_folder(home);
}

}  // namespace nacre::tools
