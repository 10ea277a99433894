// SPDX-License-Identifier: Apache-2.0
#include "tools/web/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "fs/crypt/container_format.h"
#include "metadata/backing/posix_error.h"
#include "tools/cli/own_files.h"
#include "tools/web/access.h"
#include "tools/web/path_text.h"

namespace nacre::tools::web {

namespace {

constexpr mode_t private_folder_mode = 0700;
constexpr mode_t private_file_mode = 0600;
constexpr std::size_t id_size = 16;

// Where the folders lie, and what their names begin with.
struct Place {
  std::string base;
  std::string prefix;
};

Place place_of_folders() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const bool has_cache = cache != nullptr && *cache == '/';
  const std::string home = has_cache ? "" : home_folder();
  const std::string base = has_cache ? cache : home + "/.cache";
  if (may_keep_files(home, base)) {
    std::error_code error;
    std::filesystem::create_directories(base + "/nacre", error);
    if (::access((base + "/nacre").c_str(), W_OK) == 0) return {base + "/nacre", "web-"};
  }
  return {"/var/tmp", "nacre-web-"};
}

// A descriptor that holds the folder's lock, if it is this user's own and no other process holds
// it.
metadata::FileDescriptor lock_folder(int base, const std::string& name) {
  auto folder = metadata::open_at(base, name, O_RDONLY | O_DIRECTORY);
  struct stat status {};
  const bool is_own = folder && ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid();
  if (!is_own || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return folder;
}

// Removes the folders of servers that were killed.
void remove_left_folders(const std::string& base, const std::string& prefix) {
  constexpr std::size_t random_size = 6;
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    std::string name = entry.path().filename();
    if (name.starts_with(prefix) && name.size() == prefix.size() + random_size) {
      names.push_back(std::move(name));
    }
  }
  const auto folder = metadata::open_at(AT_FDCWD, base, O_RDONLY | O_DIRECTORY);
  for (const std::string& name : names) {
    if (lock_folder(folder.get(), name)) PrivateFolder::remove(base + "/" + name);
  }
}

}  // namespace

UploadFile::UploadFile(UploadFile&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      name_(std::move(other.name_)),
      file_(std::move(other.file_)),
      size_bytes_(other.size_bytes_) {}

UploadFile::~UploadFile() {
  if (!folder_.empty()) PrivateFolder::remove(folder_);
}

Result<> UploadFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return metadata::fail_errno(errno, name_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    size_bytes_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<std::unique_ptr<PrivateFolder>> PrivateFolder::create() {
  const auto [base, prefix] = place_of_folders();
  remove_left_folders(base, prefix);
  std::string path = base + "/" + prefix + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return metadata::fail_errno(errno, path);
  // Locked for as long as this process lives. A server that begins at this moment may take the
  // folder for one that was left, before it is locked: then another one is made.
  auto lock = lock_folder(AT_FDCWD, path);
  struct stat status {};
  if (!lock || ::fstat(lock.get(), &status) != 0 || status.st_nlink == 0) return create();
  return std::unique_ptr<PrivateFolder>(new PrivateFolder(path, std::move(lock)));
}

PrivateFolder::~PrivateFolder() {
  remove(path_);
}

Result<std::string> PrivateFolder::make_folder() {
  std::string path = path_ + "/" + make_token().substr(0, id_size);
  if (::mkdir(path.c_str(), private_folder_mode) != 0) return metadata::fail_errno(errno, path);
  return path;
}

void PrivateFolder::remove(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
}

Result<UploadFile> PrivateFolder::begin_upload(std::string_view name) {
  if (!fs::is_file_name(name) || name.size() > NAME_MAX) {
    return fail(ErrorCode::invalid_argument, "the uploaded file has a name that no file can have");
  }
  NACRE_ASSIGN(std::string folder, make_folder());
  metadata::FileDescriptor file = metadata::open_at(AT_FDCWD, folder + "/" + std::string(name),
                                                    O_WRONLY | O_CREAT | O_EXCL, private_file_mode);
  if (!file) {
    const int error = errno;
    remove(folder);
    return metadata::fail_errno(error, std::string(name));
  }
  return UploadFile(std::move(folder), std::string(name), std::move(file));
}

Upload PrivateFolder::keep(UploadFile file) {
  Upload upload{.id = last_name(file.folder_),
                .name = file.name_,
                .path = file.folder_ + "/" + file.name_,
                .size_bytes = file.size_bytes_};
  file.folder_.clear();
  const LockGuard lock(mutex_);
  uploads_.push_back(upload);
  return upload;
}

std::optional<Upload> PrivateFolder::find_upload(std::string_view id) const {
  const LockGuard lock(mutex_);
  for (const Upload& upload : uploads_) {
    if (upload.id == id) return upload;
  }
  return std::nullopt;
}

bool PrivateFolder::remove_upload(std::string_view id) {
  const auto upload = find_upload(id);
  if (!upload) return false;
  {
    const LockGuard lock(mutex_);
    uploads_.remove_if([&](const Upload& one) { return one.id == id; });
  }
  remove(std::filesystem::path(upload->path).parent_path());
  return true;
}

}  // namespace nacre::tools::web
