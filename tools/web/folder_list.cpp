// SPDX-License-Identifier: Apache-2.0
#include "tools/web/folder_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <tuple>
#include <vector>

#include "fs/control/mount_table.h"
#include "gpu_engine/base/printable.h"
#include "metadata/backing/posix_error.h"
#include "metadata/backing/posix_file.h"
#include "tools/nacre/crypt_task.h"
#include "tools/web/path_text.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using Folder = std::unique_ptr<DIR, CloseFolder>;

struct Entry {
  std::string name;
  const char* kind = "other";
  bool is_folder = false;
  std::uint64_t size_bytes = 0;
  double modified = 0;
  bool is_readable = false;
};

// Does not follow a link in the last part of a name.
Entry look_at(int folder, const char* name) {
  Entry entry{.name = name};
  struct stat status {};
  if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return entry;
  entry.size_bytes = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
  constexpr double ns_per_second = 1e9;
  entry.modified = static_cast<double>(status.st_mtim.tv_sec) +
                   static_cast<double>(status.st_mtim.tv_nsec) / ns_per_second;
  entry.is_readable = ::faccessat(folder, name, R_OK, 0) == 0;
  if (S_ISDIR(status.st_mode)) {
    entry.kind = "folder";
    entry.is_folder = true;
  } else if (S_ISREG(status.st_mode)) {
    entry.kind = "file";
  } else if (S_ISLNK(status.st_mode)) {
    struct stat target {};
    if (::fstatat(folder, name, &target, 0) != 0) {
      entry.kind = "broken_link";
    } else if (S_ISDIR(target.st_mode)) {
      entry.kind = "link_to_folder";
      entry.is_folder = true;
    } else if (S_ISREG(target.st_mode)) {
      entry.kind = "link_to_file";
      entry.size_bytes = static_cast<std::uint64_t>(target.st_size);
    }
  }
  return entry;
}

std::string join(const std::string& folder, const std::string& name) {
  return folder == "/" ? "/" + name : folder + "/" + name;
}

// "$HOME/Desktop" of a line XDG_DESKTOP_DIR="$HOME/Desktop".
std::string user_folder_of(const std::string& line, const std::string& home) {
  const auto first = line.find('"'), last = line.rfind('"');
  if (first == std::string::npos || last <= first) return {};
  std::string path = line.substr(first + 1, last - first - 1);
  if (path.starts_with("$HOME/")) path = home + path.substr(5);
  return path.starts_with('/') ? path : std::string();
}

void add_place(json& places, const std::string& path, const std::string& name, const char* kind) {
  for (const auto& place : places) {
    if (place["path"] == to_path_text(path)) return;
  }
  places.push_back({{"path", to_path_text(path)}, {"name", printable(name)}, {"kind", kind}});
}

bool is_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Result<json> list_folder(const std::string& path, bool with_hidden) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return metadata::fail_errno(errno, path);
  const Folder folder(::fdopendir(descriptor));
  if (!folder) {
    const int error = errno;
    ::close(descriptor);
    return metadata::fail_errno(error, path);
  }
  std::vector<Entry> entries;
  bool is_truncated = false;
  while (const dirent* found = ::readdir(folder.get())) {
    const std::string_view name(found->d_name);
    if (name == "." || name == ".." || (!with_hidden && name.starts_with('.'))) continue;
    is_truncated = entries.size() == listed_count_max;
    if (is_truncated) break;
    entries.push_back(look_at(descriptor, found->d_name));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::forward_as_tuple(!a.is_folder, a.name) <
           std::forward_as_tuple(!b.is_folder, b.name);
  });
  json list = json::array();
  for (const Entry& entry : entries) {
    list.push_back({{"path", to_path_text(join(path, entry.name))},
                    {"name", printable(entry.name)},
                    {"kind", entry.kind},
                    {"size", entry.size_bytes},
                    {"modified", entry.modified},
                    {"is_container", entry.name.ends_with(container_suffix)},
                    {"is_readable", entry.is_readable}});
  }
  const auto slash = path.rfind('/');
  const std::string parent = slash == 0 ? "/" : path.substr(0, slash);
  return json{{"path", to_path_text(path)},
              {"shown", printable(path)},
              {"parent", path == "/" ? json() : json(to_path_text(parent))},
              {"is_writable", ::access(path.c_str(), W_OK | X_OK) == 0},
              {"entries", std::move(list)},
              {"is_truncated", is_truncated}};
}

json list_places() {
  json places = json::array();
  const std::string home = home_folder();
  add_place(places, home, last_name(home), "home");
  constexpr std::pair<const char*, const char*> purposes[] = {
      {"XDG_DESKTOP_DIR", "desktop"},    {"XDG_DOCUMENTS_DIR", "documents"},
      {"XDG_DOWNLOAD_DIR", "downloads"}, {"XDG_PICTURES_DIR", "pictures"},
      {"XDG_MUSIC_DIR", "music"},        {"XDG_VIDEOS_DIR", "videos"}};
  std::ifstream file(home + "/.config/user-dirs.dirs");
  for (std::string line; std::getline(file, line);) {
    for (const auto& [variable, kind] : purposes) {
      if (!line.starts_with(variable)) continue;
      const std::string path = user_folder_of(line, home);
      if (is_folder(path)) add_place(places, path, last_name(path), kind);
    }
  }
  if (const auto mounts = fs::read_mount_table()) {
    for (const auto& mount : *mounts) {
      const bool is_volume = mount.type == fs::nacre_mount_type && mount.owner == ::geteuid();
      const bool is_media =
          mount.mountpoint.starts_with("/media/") || mount.mountpoint.starts_with("/run/media/");
      if (!is_volume && !is_media) continue;
      add_place(places, mount.mountpoint, last_name(mount.mountpoint),
                is_volume ? "volume" : "media");
    }
  }
  add_place(places, "/", "/", "root");
  return places;
}

}  // namespace nacre::tools::web
