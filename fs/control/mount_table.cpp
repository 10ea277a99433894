// SPDX-License-Identifier: Apache-2.0
#include "fs/control/mount_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace nacre::fs {

namespace {

// A larger text is not taken for a mount table.
constexpr std::size_t table_size_bytes_max = 64u << 20;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The kernel writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// "36 35 98:0 /root /mountpoint options optional… - type source super-options"
std::optional<MountEntry> parse_line(std::string_view line) {
  const auto fields = split(line, ' ');
  if (fields.size() < 9) return std::nullopt;
  std::size_t dash = 6;
  while (dash < fields.size() && fields[dash] != "-")
    ++dash;
  if (dash + 3 >= fields.size()) return std::nullopt;
  const auto device = split(fields[2], ':');
  if (device.size() != 2) return std::nullopt;
  const auto major = number<unsigned>(device[0]);
  const auto minor = number<unsigned>(device[1]);
  if (!major || !minor) return std::nullopt;

  MountEntry entry{.device_major = *major,
                   .device_minor = *minor,
                   .mountpoint = unescape(fields[4]),
                   .type = unescape(fields[dash + 1]),
                   .source = unescape(fields[dash + 2])};
  for (const auto option : split(fields[5], ',')) {
    if (option == "ro") entry.read_only = true;
  }
  for (const auto option : split(fields[dash + 3], ',')) {
    if (option == "ro") entry.read_only = true;
    constexpr std::string_view owner = "user_id=";
    if (option.starts_with(owner)) {
      if (const auto uid = number<uid_t>(option.substr(owner.size()))) entry.owner = *uid;
    }
  }
  return entry;
}

const MountEntry* topmost(const std::vector<MountEntry>& table, const std::string& path) {
  // The table lists the mounts in the order in which they cover one another.
  for (auto entry = table.rbegin(); entry != table.rend(); ++entry) {
    if (entry->mountpoint == path) return &*entry;
  }
  return nullptr;
}

// The Nacre mount in which path lies; null if it lies in another filesystem.
const MountEntry* innermost(const std::vector<MountEntry>& table, const std::string& path) {
  const MountEntry* found = nullptr;
  for (const MountEntry& entry : table) {
    const bool contains = entry.mountpoint == "/" || path.starts_with(entry.mountpoint + "/");
    const bool is_inner = found == nullptr || entry.mountpoint.size() >= found->mountpoint.size();
    if (contains && is_inner) found = &entry;
  }
  return found != nullptr && found->type == nacre_mount_type ? found : nullptr;
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> table;
  for (const auto line : split(text, '\n')) {
    if (auto entry = parse_line(line)) table.push_back(std::move(*entry));
  }
  return table;
}

Result<std::vector<MountEntry>> read_mount_table() {
  return read_mount_table("/proc/self");
}

Result<std::vector<MountEntry>> read_mount_table(const std::string& process_folder) {
  const std::string path = process_folder + "/mountinfo";
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorCode::io, fmt::format("{}: {} (is /proc mounted?)", path, strerror(errno)));
  }
  std::string text;
  char buffer[64 << 10];
  ssize_t got = 0;
  while ((got = ::read(fd, buffer, sizeof buffer)) > 0 && text.size() < table_size_bytes_max) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const int error = got < 0 ? errno : 0;
  ::close(fd);
  if (error != 0) return fail(ErrorCode::io, fmt::format("{}: {}", path, strerror(error)));
  return parse_mount_table(text);
}

Result<MountEntry> find_nacre_mount(const std::string& path) {
  NACRE_ASSIGN(const auto table, read_mount_table());
  const std::string written = absolute_path(path);
  const MountEntry* found = topmost(table, written);
  if (found == nullptr) {
    // realpath() only reads symbolic links on the way; it does not ask a mounted filesystem for its
    // root.
    char resolved[PATH_MAX];
    if (::realpath(written.c_str(), resolved) != nullptr) {
      found = topmost(table, resolved);
    } else if (errno == ENOENT || errno == ENOTDIR) {
      return fail(ErrorCode::not_found, fmt::format("{}: {}", path, strerror(errno)));
    }
  }
  if (found == nullptr) {
    char resolved[PATH_MAX];
    if (::realpath(written.c_str(), resolved) == nullptr) resolved[0] = '\0';
    const auto mount = find_mount_with_source(resolved);
    if (mount) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is the folder of a volume, which is mounted at {}: give {}", path,
                              mount->mountpoint, mount->mountpoint));
    }
    if (const MountEntry* around = innermost(table, resolved); around != nullptr) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is not a mount itself, but lies within the one at {}: give {}",
                              path, around->mountpoint, around->mountpoint));
    }
    return fail(ErrorCode::not_found,
                fmt::format("{} is not a Nacre mount: nothing is mounted there", path));
  }
  if (found->type != nacre_mount_type) {
    return fail(ErrorCode::not_found,
                fmt::format("{} is not a Nacre mount: a filesystem of type {} "
                            "is mounted there",
                            path, found->type));
  }
  return *found;
}

std::optional<MountEntry> find_mount_with_source(const std::string& volume_directory) {
  const auto table = read_mount_table();
  if (!table) return std::nullopt;
  for (const auto& mount : *table) {
    if (mount.type == nacre_mount_type && mount.source == volume_directory) return mount;
  }
  return std::nullopt;
}

std::string absolute_path(std::string_view path) {
  std::string full;
  if (!path.starts_with('/')) {
    char here[PATH_MAX];
    if (::getcwd(here, sizeof here) != nullptr) full = here;
    full += '/';
  }
  full += path;

  std::vector<std::string_view> parts;
  for (const auto part : split(full, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else {
      parts.push_back(part);
    }
  }
  std::string out;
  for (const auto part : parts) {
    out += '/';
    out += part;
  }
  return out.empty() ? "/" : out;
}

}  // namespace nacre::fs
