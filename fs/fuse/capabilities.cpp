// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/capabilities.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace nacre::fs {

namespace {

// The lines of /proc/PID/status (proc(5)) that matter here.
struct Credentials {
  std::optional<std::uint64_t> effective;
  std::optional<std::uint64_t> fs_uid, fs_gid;
  std::string groups;
};

// Of one thread. The folder stays that thread's: when its number is given to another, it is empty.
class ThreadFolder {
 public:
  explicit ThreadFolder(pid_t thread) {
    // The numbers in requests are those of the daemon's own PID namespace; another's /proc would
    // show somebody else under them.
    std::array<char, 32> own = {};
    if (readlink("/proc/self", own.data(), own.size() - 1) < 0) return;
    if (own.data() != std::to_string(getpid())) return;
    const std::string path = "/proc/" + std::to_string(thread);
    folder_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~ThreadFolder() {
    if (folder_ >= 0) close(folder_);
  }
  ThreadFolder(const ThreadFolder&) = delete;
  ThreadFolder& operator=(const ThreadFolder&) = delete;

  bool is_open() const { return folder_ >= 0; }

  bool is_in_our_user_namespace() const {
    struct stat ours = {};
    struct stat theirs = {};
    return stat("/proc/self/ns/user", &ours) == 0 && fstatat(folder_, "ns/user", &theirs, 0) == 0 &&
           ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
  }

  Credentials credentials() const {
    Credentials result;
    std::istringstream lines(text_of("status"));
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

 private:
  // Real, effective, saved, and that for files.
  static std::optional<std::uint64_t> fourth_of(const std::string& numbers) {
    std::istringstream words(numbers);
    std::uint64_t number = 0;
    for (int i = 0; i < 4; ++i) {
      if (!(words >> number)) return std::nullopt;
    }
    return number;
  }

  std::string text_of(const char* name) const {
    const int file = openat(folder_, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    std::string text;
    std::array<char, 4096> part = {};
    for (;;) {
      const ssize_t count = read(file, part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      text.append(part.data(), static_cast<std::size_t>(count));
    }
    close(file);
    return text;
  }

  int folder_ = -1;
};

// None when the thread acts for somebody else, or cannot be looked at.
std::optional<Credentials> credentials_of(const Requester& requester, const ThreadFolder& folder) {
  if (!folder.is_open()) return std::nullopt;
  Credentials credentials = folder.credentials();
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
