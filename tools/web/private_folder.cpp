// SPDX-License-Identifier: Apache-2.0
#include "tools/web/private_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

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

std::string base_folder() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const bool has_cache = cache != nullptr && *cache == '/';
  const std::string home = has_cache ? "" : home_folder();
  const std::string base = has_cache ? cache : home + "/.cache";
  if (may_keep_files(home, base)) {
    std::error_code error;
    std::filesystem::create_directories(base + "/nacre", error);
    if (::access((base + "/nacre").c_str(), W_OK) == 0) return base + "/nacre";
  }
  return "/var/tmp";
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
  std::string path = base_folder() + "/web-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return metadata::fail_errno(errno, path);
  return std::unique_ptr<PrivateFolder>(new PrivateFolder(path));
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
    return fail(ErrorCode::invalid_argument, "this is no file name");
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
