// SPDX-License-Identifier: Apache-2.0
// A volume's folder in a file system. All names are resolved from a descriptor of the folder, so it
// may be renamed or mounted over while it is open. Symbolic links in it are not followed: a user
// that can write to the folder must not be able to direct accesses elsewhere.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>

#include "gpu_engine/base/folder_owner.h"
#include "metadata/backing/backing.h"
#include "metadata/backing/path.h"
#include "metadata/backing/posix_error.h"
#include "metadata/backing/posix_file.h"

namespace nacre::metadata {

namespace {

constexpr unsigned file_mode = 0600;
constexpr unsigned folder_mode = 0700;

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

int open_flags(OpenMode mode) {
  switch (mode) {
    case OpenMode::read:
      return O_RDONLY;
    case OpenMode::read_write:
      return O_RDWR;
    case OpenMode::create_new:
    case OpenMode::create_or_empty:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

class PosixDirectory final : public BackingDirectory {
 public:
  PosixDirectory(FileDescriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  Result<std::unique_ptr<BackingFile>> open(std::string_view path, OpenMode mode) override {
    NACRE_ASSIGN(const Place place, find(path));
    // The file is never emptied in place, because the name may be a link to a file elsewhere.
    if (mode == OpenMode::create_or_empty &&
        unlinkat(place.folder.get(), place.name.c_str(), 0) != 0 && errno != ENOENT) {
      return fail_path(errno, path);
    }
    FileDescriptor file = open_at(place.folder.get(), place.name, open_flags(mode), file_mode);
    if (!file) return fail_unopened(errno, place, path);
    if ((open_flags(mode) & O_CREAT) != 0) {
      if (const int error = give_to_folder_owner(place.folder.get(), file.get())) {
        unlinkat(place.folder.get(), place.name.c_str(), 0);
        return fail_path(error, path);
      }
    }
    struct stat status = {};
    if (fstat(file.get(), &status) != 0) return fail_path(errno, path);
    if (S_ISDIR(status.st_mode)) return fail_path(EISDIR, path);
    if (!S_ISREG(status.st_mode)) {
      return fail(ErrorCode::corrupt, fmt::format("{}: not a regular file", full(path)));
    }
    if (mode == OpenMode::read_write && status.st_nlink > 1) return fail_linked(full(path));
    return make_posix_file(std::move(file), full(path));
  }

  Result<void> remove(std::string_view path) override {
    NACRE_ASSIGN(const Place place, find(path));
    if (unlinkat(place.folder.get(), place.name.c_str(), 0) == 0) return {};
    const bool is_folder = errno == EISDIR || errno == EPERM;
    if (is_folder && unlinkat(place.folder.get(), place.name.c_str(), AT_REMOVEDIR) == 0) return {};
    return fail_path(errno, path);
  }

  Result<void> rename(std::string_view from, std::string_view to) override {
    NACRE_TRY(check_same_folder(from, to));
    NACRE_ASSIGN(const Place place, find(from));
    const std::string to_name(split_path(to)->name);
    if (renameat(place.folder.get(), place.name.c_str(), place.folder.get(), to_name.c_str()) !=
        0) {
      return fail_path(errno, from);
    }
    return {};
  }

  Result<void> make_directory(std::string_view path) override {
    NACRE_TRY(check_top_folder(path));
    const std::string name(path);
    if (mkdirat(descriptor_.get(), name.c_str(), folder_mode) == 0) {
      const int error = give_new_folder_to_owner(descriptor_.get(), name);
      return error == 0 ? Result<void>() : fail_path(error, path);
    }
    const int number = errno;
    struct stat status = {};
    if (number != EEXIST ||
        fstatat(descriptor_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail_path(number, path);
    }
    if (!S_ISDIR(status.st_mode)) return fail_path(ENOTDIR, path);
    return {};
  }

  Result<bool> exists(std::string_view path) override {
    const auto status = stat_of(path);
    if (status) return true;
    if (status.error().code == ErrorCode::not_found) return false;
    return tl::unexpected(status.error());
  }

  Result<std::uint64_t> file_size(std::string_view path) override {
    NACRE_ASSIGN(const struct stat status, stat_of(path));
    if (S_ISDIR(status.st_mode)) return fail_path(EISDIR, path);
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<std::vector<std::string>> list(std::string_view folder) override {
    NACRE_TRY(check_folder(folder));
    const int number = openat(descriptor_.get(), folder.empty() ? "." : std::string(folder).c_str(),
                              O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (number < 0) return fail_path(errno, folder);
    const std::unique_ptr<DIR, CloseDirectory> stream(fdopendir(number));
    if (!stream) {
      const FileDescriptor unused(number);
      return fail_path(errno, folder);
    }
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(stream.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return fail_path(errno, folder);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<void> sync_directory(std::string_view folder) override {
    NACRE_TRY(check_folder(folder));
    NACRE_ASSIGN(const FileDescriptor directory, open_folder(folder, O_RDONLY));
    while (fsync(directory.get()) != 0) {
      if (errno == EINTR) continue;
      // Some network file systems have no fsync of folders, because their servers make changes
      // durable.
      if (errno == EINVAL) return {};
      return fail_path(errno, folder);
    }
    return {};
  }

  Result<BackingSpace> space() override {
    struct statvfs status = {};
    if (fstatvfs(descriptor_.get(), &status) != 0) return fail_path(errno, "");
    return BackingSpace{.total_bytes = status.f_blocks * status.f_frsize,
                        .free_bytes = status.f_bfree * status.f_frsize,
                        .available_bytes = status.f_bavail * status.f_frsize,
                        .free_files = status.f_ffree};
  }

  std::string description() const override { return path_; }

 private:
  struct Place {
    FileDescriptor folder;
    std::string name;
  };

  std::string full(std::string_view path) const {
    return path.empty() ? path_ : fmt::format("{}/{}", path_, path);
  }
  tl::unexpected<Error> fail_path(int number, std::string_view path) const {
    return fail_errno(number, full(path));
  }

  // An earlier version of Nacre, or a copy made by root, may have left files that belong to root.
  tl::unexpected<Error> fail_unopened(int number, const Place& place, std::string_view path) const {
    struct stat file = {};
    struct stat top = {};
    if (number == EACCES && geteuid() != 0 && fstat(descriptor_.get(), &top) == 0 &&
        top.st_uid == geteuid() &&
        fstatat(place.folder.get(), place.name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
        file.st_uid != top.st_uid) {
      return fail(
          code_of_errno(number),
          fmt::format("{}: {}: the file belongs to user {}, though the folder is yours. Root "
                      "gives all of it back to you with: chown -R {}:{} {}",
                      full(path), std::generic_category().message(number), file.st_uid, top.st_uid,
                      top.st_gid, path_));
    }
    return fail_path(number, path);
  }

  Result<FileDescriptor> open_folder(std::string_view folder, int flags) const {
    FileDescriptor directory =
        open_at(descriptor_.get(), folder.empty() ? "." : std::string(folder), flags | O_DIRECTORY);
    if (!directory) return fail_path(errno, folder);
    return directory;
  }

  Result<Place> find(std::string_view path) const {
    NACRE_ASSIGN(const PathParts parts, split_path(path));
    NACRE_ASSIGN(FileDescriptor folder, open_folder(parts.folder, O_PATH));
    return Place{std::move(folder), std::string(parts.name)};
  }

  Result<struct stat> stat_of(std::string_view path) const {
    NACRE_ASSIGN(const Place place, find(path));
    struct stat status = {};
    if (fstatat(place.folder.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail_path(errno, path);
    }
    return status;
  }

  const FileDescriptor descriptor_;
  const std::string path_;
};

}  // namespace

Result<std::shared_ptr<BackingDirectory>> open_posix_directory(const std::string& path) {
  // Here a symbolic link is followed, because it is part of the path that the user gave.
  FileDescriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail_errno(errno, path);
  return std::make_shared<PosixDirectory>(std::move(directory), path);
}

}  // namespace nacre::metadata
