// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/thread_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace nacre::fs {

ThreadFolder::ThreadFolder(pid_t thread) {
  if (thread <= 0) return;
  // The numbers in requests are those of the daemon's own PID namespace. The /proc of another one
  // would show other processes under them.
  std::array<char, 32> own = {};
  if (readlink("/proc/self", own.data(), own.size() - 1) < 0) return;
  if (own.data() != std::to_string(getpid())) return;
  const std::string path = "/proc/" + std::to_string(thread);
  folder_ = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

ThreadFolder::~ThreadFolder() {
  if (folder_ >= 0) close(folder_);
}

bool ThreadFolder::is_in_our_user_namespace() const {
  struct stat ours = {};
  struct stat theirs = {};
  return stat("/proc/self/ns/user", &ours) == 0 && fstatat(folder_, "ns/user", &theirs, 0) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

std::string ThreadFolder::text_of(const char* name) const {
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

}  // namespace nacre::fs
