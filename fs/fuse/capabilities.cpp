// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/capabilities.h"

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "fs/fuse/thread_folder.h"

namespace nacre::fs {

namespace {

// The lines of /proc/PID/status (proc(5)) that matter here.
struct Credentials {
  std::optional<std::uint64_t> effective;
  std::optional<std::uint64_t> fs_uid, fs_gid;
  std::string groups;
};

// The line has the real, effective and saved number, and that for files.
std::optional<std::uint64_t> fourth_of(const std::string& numbers) {
  std::istringstream words(numbers);
  std::uint64_t number = 0;
  for (int i = 0; i < 4; ++i) {
    if (!(words >> number)) return std::nullopt;
  }
  return number;
}

Credentials credentials_in(const ThreadFolder& folder) {
  Credentials result;
  std::istringstream lines(folder.text_of("status"));
  std::string line;
  while (std::getline(lines, line)) {
    const std::string_view view = line;
    if (view.starts_with("CapEff:")) {
      result.effective = std::strtoull(line.c_str() + 7, nullptr, 16);
    } else if (view.starts_with("Uid:")) {
      result.fs_uid = fourth_of(line.substr(4));
    } else if (view.starts_with("Gid:")) {
      result.fs_gid = fourth_of(line.substr(4));
    } else if (view.starts_with("Groups:")) {
      result.groups = line.substr(7);
    }
  }
  return result;
}

// Returns none if the thread acts for another user, or cannot be looked at.
std::optional<Credentials> credentials_of(const Requester& requester, const ThreadFolder& folder) {
  if (!folder.is_open()) return std::nullopt;
  Credentials credentials = credentials_in(folder);
  if (credentials.fs_uid != requester.uid || credentials.fs_gid != requester.gid) {
    return std::nullopt;
  }
  return credentials;
}

}  // namespace

bool has_capability(const Requester& requester, unsigned capability) {
  if (requester.process <= 0) return false;
  const ThreadFolder folder(requester.process);
  const auto credentials = credentials_of(requester, folder);
  return credentials && (credentials->effective.value_or(0) >> capability & 1) != 0 &&
         folder.is_in_our_user_namespace();
}

bool is_in_group(const Requester& requester, gid_t group) {
  if (requester.gid == group) return true;
  if (requester.process <= 0) return false;
  const ThreadFolder folder(requester.process);
  const auto credentials = credentials_of(requester, folder);
  if (!credentials) return false;
  std::istringstream words(credentials->groups);
  for (std::uint64_t one = 0; words >> one;) {
    if (one == group) return true;
  }
  return false;
}

}  // namespace nacre::fs
