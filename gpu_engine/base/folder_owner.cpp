// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/base/folder_owner.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace nacre {

namespace {

constexpr mode_t private_folder_mode = 0700;

class OwnedNumber {
 public:
  explicit OwnedNumber(int number) : number_(number) {}
  OwnedNumber(const OwnedNumber&) = delete;
  OwnedNumber& operator=(const OwnedNumber&) = delete;
  ~OwnedNumber() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }

 private:
  const int number_;
};

// Root in a container may not change owners, and some file systems have one owner for everything.
bool is_no_matter(int error) {
  return error == EPERM || error == EINVAL || error == EOPNOTSUPP || error == ENOSYS;
}

bool is_empty_folder(int folder) {
  const int number = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (number < 0) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(number), closedir);
  if (!stream) {
    close(number);
    return false;
  }
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return false;
  }
  return true;
}

}  // namespace

int give_to_folder_owner(int folder, int made) {
  struct stat place = {};
  struct stat status = {};
  if (geteuid() != 0 || fstat(folder, &place) != 0 || fstat(made, &status) != 0) return 0;
  const bool is_shared = place.st_uid == 0 && place.st_gid != 0 && (place.st_mode & S_IWGRP) != 0;
  if (place.st_uid == 0 && !is_shared) return 0;
  if (status.st_uid != place.st_uid || status.st_gid != place.st_gid) {
    if (fchown(made, place.st_uid, place.st_gid) != 0) return is_no_matter(errno) ? 0 : errno;
  }
  if (!is_shared) return 0;
  const mode_t group_bits = S_IRGRP | S_IWGRP | (S_ISDIR(status.st_mode) ? S_IXGRP | S_ISGID : 0);
  const mode_t mode = (status.st_mode & 07777) | (place.st_mode & group_bits);
  return fchmod(made, mode) == 0 || is_no_matter(errno) ? 0 : errno;
}

int give_new_folder_to_owner(int parent, const std::string& name) {
  if (geteuid() != 0) return 0;
  const OwnedNumber made(
      openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (made.get() < 0) return errno;
  struct stat status = {};
  if (fstat(made.get(), &status) != 0) return errno;
  if (status.st_uid != 0 || !is_empty_folder(made.get())) return 0;
  return give_to_folder_owner(parent, made.get());
}

int make_folders_for_owner(const std::string& path) {
  // The working directory, or the root: missing folders are made below it.
  std::size_t end = 0;
  while (end < path.size()) {
    const std::size_t begin = path.find_first_not_of('/', end);
    if (begin == std::string::npos) return 0;
    end = std::min(path.find('/', begin), path.size());
    const std::string folder = path.substr(0, end);
    const std::string above = path.substr(0, begin).empty() ? "." : path.substr(0, begin);
    const OwnedNumber parent(open(above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (parent.get() < 0) return errno;
    const std::string name = path.substr(begin, end - begin);
    if (mkdirat(parent.get(), name.c_str(), private_folder_mode) != 0) {
      if (errno == EEXIST) continue;
      struct stat status = {};
      if (stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
      return errno;
    }
    if (const int error = give_new_folder_to_owner(parent.get(), name)) return error;
  }
  return 0;
}

}  // namespace nacre
