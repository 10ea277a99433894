// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/user_file.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "gpu_engine/base/folder_owner.h"
#include "tools/cli/own_files.h"

namespace nacre::tools {

namespace {

constexpr std::size_t file_size_bytes_max = 16u << 20;

tl::unexpected<Error> system_failure(const std::string& what) {
  const auto code = errno == EACCES || errno == EPERM ? ErrorCode::permission
                    : errno == EROFS                  ? ErrorCode::read_only
                    : errno == ENOENT                 ? ErrorCode::not_found
                                                      : ErrorCode::io;
  return fail(code, fmt::format("{}: {}", what, strerror(errno)));
}

bool must_escape(char c, bool with_ascii_alone) {
  if (with_ascii_alone && (c <= ' ' || c == '"' || c == '\x7f')) return true;
  return c == ' ' || c == '\n' || c == '\t' || c == '\\' || c == '#';
}

// An open folder, for the file's lock and its fsync.
class Folder {
 public:
  explicit Folder(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

Result<> write_file(int folder, const std::string& path, std::string_view text, bool synced) {
  // Never follow a link that another user may have put there.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_failure(path);
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return system_failure(path);
  Result<> result;
  // With sudo this may be a file of the user who called sudo.
  if (const int error = give_to_folder_owner(folder, descriptor)) {
    errno = error;
    result = system_failure(path);
  }
  while (result && !text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      result = system_failure(path);
    } else {
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (result && synced && ::fsync(descriptor) != 0) result = system_failure(path);
  ::close(descriptor);
  return result;
}

// The folder lies in one that everybody may write to. So it must belong to this user, and be no
// link.
Result<std::string> spare_folder(bool make) {
  const std::string path = fmt::format("/var/tmp/nacre-{}", ::geteuid());
  if (make && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_failure(path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return system_failure(path);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{} is not a folder of this user's that is closed to others", path));
  }
  return path;
}

}  // namespace

std::string escape_path(std::string_view path, bool with_ascii_alone) {
  std::string out;
  for (const char c : path) {
    out += must_escape(c, with_ascii_alone) ? fmt::format("\\{:03o}", static_cast<unsigned char>(c))
                                            : std::string(1, c);
  }
  return out;
}

std::string unescape_path(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

Result<std::vector<std::string>> user_folders() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  std::string home, base;
  if (config != nullptr && config[0] == '/') {
    base = config;
  } else {
    if (const char* variable = std::getenv("HOME"); variable != nullptr && variable[0] == '/') {
      home = variable;
    } else if (const passwd* entry = ::getpwuid(::geteuid()); entry != nullptr) {
      home = entry->pw_dir;
    }
    if (!home.starts_with('/')) {
      return fail(ErrorCode::missing, "this user has no home directory");
    }
    base = home + "/.config";
  }
  std::vector<std::string> folders;
  const bool may_keep = may_keep_files(home, base);
  if (may_keep) folders.push_back(base + "/nacre");
  // Once the spare folder exists, it counts even if files may be kept in the home directory by now.
  auto spare = spare_folder(!may_keep);
  if (spare) folders.push_back(std::move(*spare));
  if (folders.empty()) return tl::unexpected(spare.error());
  return folders;
}

Result<std::string> UserFile::read() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::string();
    return system_failure(path_);
  }
  if (!S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) > file_size_bytes_max) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not a plain file, or is too large, so Nacre did not write it: "
                            "rename it, and Nacre makes a new one",
                            path_));
  }
  std::ifstream file(path_, std::ios::binary);
  if (!file) return system_failure(path_);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Result<> UserFile::replace(
    const std::function<Result<std::string>(const std::string& content)>& change,
    Durability durability) const {
  const std::string folder_path = std::filesystem::path(path_).parent_path();
  // ~/.config and similar folders are private.
  if (const int error = make_folders_for_owner(folder_path)) {
    errno = error;
    return system_failure(folder_path);
  }
  const Folder folder(folder_path);
  if (folder.descriptor() < 0) return system_failure(folder_path);
  while (::flock(folder.descriptor(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_failure(folder_path);
  }
  NACRE_ASSIGN(const auto content, read());
  NACRE_ASSIGN(const auto text, change(content));
  const bool synced = durability == Durability::synced;
  const std::string fresh = path_ + ".new";
  NACRE_TRY(write_file(folder.descriptor(), fresh, text, synced));
  if (::rename(fresh.c_str(), path_.c_str()) != 0) return system_failure(path_);
  if (synced && ::fsync(folder.descriptor()) != 0) return system_failure(folder_path);
  return {};
}

}  // namespace nacre::tools
