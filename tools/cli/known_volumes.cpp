// SPDX-License-Identifier: Apache-2.0
// See known_volumes.h.
#include "tools/cli/known_volumes.h"

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

#include <fmt/format.h>

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

bool must_escape(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\\' || c == '#';
}

std::string escape(std::string_view path) {
  std::string out;
  for (const char c : path) {
    out +=
        must_escape(c) ? fmt::format("\\{:03o}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

std::string unescape(std::string_view text) {
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

Result<> write_synced(const std::string& path, std::string_view text) {
  // Never through a link that somebody left there.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_failure(path);
  const int descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) return system_failure(path);
  Result<> result;
  while (result && !text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      result = system_failure(path);
    } else {
      text.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (result && ::fsync(descriptor) != 0) result = system_failure(path);
  ::close(descriptor);
  return result;
}

}  // namespace

Result<std::string> parse_fingerprint(std::string_view text) {
  constexpr std::size_t digits = 64;
  std::string lower;
  for (const char c : text)
    lower += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  if (lower.size() == digits && lower.find_first_not_of("0123456789abcdef") == std::string::npos) {
    return lower;
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is no fingerprint of a volume: that has {} hexadecimal digits, as "
                          "'nacre key list' with a secret shows them",
                          text, digits));
}

Result<KnownVolumes> KnownVolumes::of_user() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && config[0] == '/') {
    return KnownVolumes(std::string(config) + "/nacre/known_volumes");
  }
  std::string home;
  if (const char* variable = std::getenv("HOME"); variable != nullptr && variable[0] == '/') {
    home = variable;
  } else if (const passwd* entry = ::getpwuid(::geteuid()); entry != nullptr) {
    home = entry->pw_dir;
  }
  if (!home.starts_with('/')) {
    return fail(ErrorCode::missing, "this user has no home directory");
  }
  return KnownVolumes(home + "/.config/nacre/known_volumes");
}

std::string KnownVolumes::to_line(const KnownVolume& volume) {
  return fmt::format("{} {} {}", escape(volume.path), volume.volume_id, volume.fingerprint);
}

std::optional<KnownVolume> KnownVolumes::from_line(std::string_view line) {
  if (line.starts_with('#')) return std::nullopt;
  const auto first = line.find(' ');
  const auto second = line.find(' ', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  return KnownVolume{.path = unescape(line.substr(0, first)),
                     .volume_id = std::string(line.substr(first + 1, second - first - 1)),
                     .fingerprint = std::string(line.substr(second + 1))};
}

Result<std::vector<std::string>> KnownVolumes::read_lines() const {
  std::vector<std::string> lines;
  struct stat status {};
  if (::stat(file_.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return lines;
    return system_failure(file_);
  }
  if (!S_ISREG(status.st_mode) || static_cast<std::size_t>(status.st_size) > file_size_bytes_max) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is no list of volumes", file_));
  }
  std::ifstream file(file_);
  if (!file) return system_failure(file_);
  for (std::string line; std::getline(file, line);)
    lines.push_back(std::move(line));
  return lines;
}

namespace {

constexpr std::string_view what_it_may_mean =
    "Somebody may have put a volume of his own in its place, to see what you write to it. ";

tl::unexpected<Error> is_another(const KnownVolume& volume, const KnownVolume& known,
                                 const std::string& line_to_remove) {
  return fail(
      ErrorCode::not_permitted,
      fmt::format("{} holds another volume than when it was used last: {}. {}"
                  "Or it was made anew, or its key was replaced, and you know about it. Only then "
                  "remove {}",
                  volume.path,
                  known.volume_id == volume.volume_id
                      ? fmt::format("its key has another fingerprint, {}", volume.fingerprint)
                      : fmt::format("its id is {}, it was {}", volume.volume_id, known.volume_id),
                  what_it_may_mean, line_to_remove));
}

tl::unexpected<Error> has_another_key(const KnownVolume& volume, const KnownVolume& known,
                                      const std::string& line_to_remove) {
  return fail(
      ErrorCode::not_permitted,
      fmt::format("{} says that it is the volume that is known as {} ({}), but its key has another "
                  "fingerprint, {}. {}Or it is a copy from before the volume's key was replaced, "
                  "or that key was replaced elsewhere, and you know about it. Only then name what "
                  "you expect here (--fingerprint HEX), or, where the other one is no more, remove "
                  "{}",
                  volume.path, known.path, known.volume_id, volume.fingerprint, what_it_may_mean,
                  line_to_remove));
}

}  // namespace

Result<KnownVolumes::Acquaintance> KnownVolumes::check(const KnownVolume& volume,
                                                       bool is_named) const {
  NACRE_ASSIGN(const auto lines, read_lines());
  struct Line {
    std::size_t index;
    KnownVolume known;
  };
  std::optional<Line> of_path, newest_of_id;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto known = from_line(lines[i]);
    if (!known) continue;
    if (known->path == volume.path && !of_path) of_path = {i, *known};
    if (known->volume_id == volume.volume_id) newest_of_id = {i, *known};
  }
  const auto to_remove = [&](const Line& line) {
    return fmt::format("line {} of {} and try again: {}", line.index + 1, file_, lines[line.index]);
  };
  if (of_path) {
    const bool same_id = of_path->known.volume_id == volume.volume_id;
    if (same_id &&
        (volume.fingerprint.empty() || of_path->known.fingerprint == volume.fingerprint)) {
      return Acquaintance{.is_known = true};
    }
    const bool has_newer_key = same_id && newest_of_id->index > of_path->index &&
                               newest_of_id->known.fingerprint == volume.fingerprint;
    if (!has_newer_key) return is_another(volume, of_path->known, to_remove(*of_path));
    return Acquaintance{.is_known = true, .other_path = newest_of_id->known.path};
  }
  if (!newest_of_id || volume.fingerprint.empty()) return Acquaintance{};
  if (newest_of_id->known.fingerprint == volume.fingerprint) {
    return Acquaintance{.is_known = true, .other_path = newest_of_id->known.path};
  }
  if (is_named) return Acquaintance{.has_another_key = true};
  return has_another_key(volume, newest_of_id->known, to_remove(*newest_of_id));
}

Result<> KnownVolumes::pin(const KnownVolume& volume) const {
  return write_line(volume, false);
}

Result<> KnownVolumes::pin_copy(const KnownVolume& volume) const {
  return write_line(volume, true);
}

Result<> KnownVolumes::write_line(const KnownVolume& volume, bool in_front) const {
  const std::string folder_path = std::filesystem::path(file_).parent_path();
  // ~/.config and its like are private.
  std::error_code error;
  const mode_t mask = ::umask(077);
  std::filesystem::create_directories(folder_path, error);
  ::umask(mask);
  if (error) {
    errno = error.value();
    return system_failure(folder_path);
  }
  const Folder folder(folder_path);
  if (folder.descriptor() < 0) return system_failure(folder_path);
  while (::flock(folder.descriptor(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_failure(folder_path);
  }
  NACRE_ASSIGN(const auto lines, read_lines());
  const std::string own_line = to_line(volume) + '\n';
  std::string text;
  bool is_written = false;
  for (const auto& line : lines) {
    const auto known = from_line(line);
    if (known && known->path == volume.path) continue;
    if (in_front && !is_written && known && known->volume_id == volume.volume_id) {
      text += own_line;
      is_written = true;
    }
    text += line + '\n';
  }
  if (!is_written) text += own_line;
  const std::string fresh = file_ + ".new";
  NACRE_TRY(write_synced(fresh, text));
  if (::rename(fresh.c_str(), file_.c_str()) != 0) return system_failure(file_);
  if (::fsync(folder.descriptor()) != 0) return system_failure(folder_path);
  return {};
}

}  // namespace nacre::tools
