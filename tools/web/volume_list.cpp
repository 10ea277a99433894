// SPDX-License-Identifier: Apache-2.0
#include "tools/web/volume_list.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "fs/control/control_client.h"
#include "gpu_engine/base/printable.h"
#include "metadata/backing/backing.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/superblock.h"
#include "tools/cli/known_volumes.h"
#include "tools/web/path_text.h"
#include "tools/web/program.h"

namespace nacre::tools::web {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds stats_timeout{2000};
constexpr std::size_t known_count_max = 1000;

struct Facts {
  std::string path;  // of the volume's folder
  std::optional<KnownVolume> known;
  std::optional<fs::MountEntry> mount;
};

std::vector<KnownVolume> known_volumes() {
  std::vector<KnownVolume> volumes;
  const auto files = KnownVolumes::of_user();
  if (!files) return volumes;
  for (const KnownVolumes& known : *files) {
    std::ifstream file(known.file());
    for (std::string line; std::getline(file, line) && volumes.size() < known_count_max;) {
      auto volume = KnownVolumes::from_line(line);
      if (!volume) continue;
      const bool is_new = std::none_of(volumes.begin(), volumes.end(), [&](const auto& other) {
        return other.path == volume->path;
      });
      if (is_new) volumes.push_back(std::move(*volume));
    }
  }
  return volumes;
}

std::vector<fs::MountEntry> nacre_mounts() {
  std::vector<fs::MountEntry> mounts;
  const auto table = fs::read_mount_table();
  if (!table) return mounts;
  for (const auto& mount : *table) {
    if (mount.type == fs::nacre_mount_type) mounts.push_back(mount);
  }
  return mounts;
}

std::string resolved(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::canonical(path, error);
  return error ? path : found.string();
}

// A field of a daemon's reply that must be a text.
std::string text_field(const json& reply, const char* name) {
  const auto found = reply.find(name);
  return found != reply.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// A field that must be an object, or else an empty one.
json object_field(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_object() ? *found : json::object();
}

json number_field(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number() ? *found : json();
}

json free_bytes(const std::string& path) {
  struct statvfs space {};
  if (::statvfs(path.c_str(), &space) != 0) return {};
  return std::uint64_t{space.f_bavail} * space.f_frsize;
}

void set_state(json& volume, const char* state, std::string text) {
  volume["state"] = state;
  volume["state_text"] = printable(text);
}

// What the daemon says. Its reply is the mount's own claim, so its texts are shown, not believed.
void ask_daemon(json& volume, const Facts& facts) {
  const fs::MountEntry& mount = *facts.mount;
  json daemon = {{"pid", nullptr}, {"answers", false}, {"error", nullptr}};
  auto client = fs::ControlClient::connect(mount);
  const Result<json> reply = client ? client->request("stats", stats_timeout)
                                    : Result<json>(tl::unexpected(client.error()));
  if (client) daemon["pid"] = client->daemon_pid();
  if (!reply) {
    daemon["error"] = printable(reply.error().message);
    const auto life = fs::look_up_daemon(mount);
    const bool has_ended =
        life.state == fs::DaemonState::ended || life.state == fs::DaemonState::ended_closed;
    if (has_ended) {
      set_state(volume, "daemon_ended",
                fmt::format("still mounted on {}, but its daemon has ended", mount.mountpoint));
    }
    volume["daemon"] = std::move(daemon);
    return;
  }
  daemon["answers"] = true;
  volume["daemon"] = std::move(daemon);
  volume["label"] = printable(text_field(*reply, "label"));
  if (const auto id = text_field(*reply, "volume_id"); !id.empty()) volume["volume_id"] = id;
  const json stats = object_field(*reply, "stats");
  const json segments = object_field(stats, "segments");
  volume["space"] = {{"file_bytes", number_field(stats, "data_bytes")},
                     {"file_count", number_field(stats, "inode_count")},
                     {"stored_bytes", number_field(segments, "stored_bytes")},
                     {"live_bytes", number_field(segments, "live_bytes")},
                     {"dead_bytes", number_field(segments, "dead_bytes")},
                     {"free_bytes", free_bytes(facts.path)}};
  volume["health"] = stats.value("health", json());
  volume["engine"] = object_field(stats, "engine").value("backend", json());
  volume["rotation"] = stats.value("rotation", json());
  volume["scrub"] = stats.value("scrub", json());
}

void look_at_mounted(json& volume, const Facts& facts) {
  const fs::MountEntry& mount = *facts.mount;
  const bool is_mine = mount.owner == ::geteuid() || ::geteuid() == 0;
  volume["mountpoint"] = to_path_text(mount.mountpoint);
  volume["read_only"] = mount.read_only;
  volume["is_mine"] = is_mine;
  if (!is_mine) {
    set_state(volume, "elsewhere",
              fmt::format("mounted on {} by user {}", mount.mountpoint, mount.owner));
    return;
  }
  set_state(volume, "mounted", fmt::format("mounted on {}", mount.mountpoint));
  ask_daemon(volume, facts);
}

void look_at_unmounted(json& volume, const Facts& facts) {
  struct stat status {};
  if (::stat(facts.path.c_str(), &status) != 0) {
    set_state(volume, "missing",
              errno == ENOENT ? "the folder is not there" : "the folder cannot be reached");
    return;
  }
  const auto directory = metadata::open_posix_directory(facts.path);
  if (!directory) return set_state(volume, "missing", directory.error().message);
  const auto superblock = metadata::find_superblock(**directory);
  if (!superblock) return set_state(volume, "not_a_volume", superblock.error().message);
  volume["label"] = printable(superblock->superblock.claims.label);
  const auto lock = metadata::read_lock(facts.path);
  if (lock && lock->is_held) {
    volume["daemon"] = {{"pid", lock->pid}, {"answers", false}, {"error", nullptr}};
    set_state(volume, "in_use", fmt::format("in use by process {}", lock->pid));
    return;
  }
  set_state(volume, "not_mounted", "not mounted");
}

json volume_json(const Facts& facts) {
  const std::string mountpoint = facts.mount ? facts.mount->mountpoint : "MOUNTPOINT";
  json volume = {{"path", to_path_text(facts.path)},
                 {"name", printable(last_name(facts.path))},
                 {"shown", printable(facts.path)},
                 {"label", ""},
                 {"volume_id", facts.known ? facts.known->volume_id : ""},
                 {"fingerprint", facts.known ? facts.known->fingerprint : ""},
                 {"is_known", facts.known.has_value()},
                 {"mountpoint", nullptr},
                 {"read_only", false},
                 {"is_mine", true},
                 {"daemon", nullptr},
                 {"rotation", nullptr},
                 {"scrub", nullptr},
                 {"space", nullptr},
                 {"last_mountpoint", nullptr},
                 {"commands",
                  {{"mount", shell_line({"mount.nacre", facts.path, mountpoint})},
                   {"unmount", shell_line({"nacre", "umount", mountpoint})}}}};
  try {
    if (facts.mount) {
      look_at_mounted(volume, facts);
    } else {
      look_at_unmounted(volume, facts);
    }
  } catch (const std::exception& error) {
    // A failure of one volume must not keep the others out of the list.
    volume["daemon"] = {{"pid", nullptr}, {"answers", false}, {"error", printable(error.what())}};
    if (!volume.contains("state"))
      set_state(volume, "missing", "the state of the volume cannot be read");
  }
  return volume;
}

// A mount's source is a claim of the user that mounted it, so only mounts of this user and of root
// count as mounts of a volume's folder.
bool is_mount_of(const fs::MountEntry& mount, const std::string& folder) {
  return mount.source == folder && (mount.owner == ::geteuid() || mount.owner == 0);
}

std::vector<Facts> all_facts() {
  std::vector<Facts> all;
  for (KnownVolume& known : known_volumes()) {
    const std::string path = known.path;
    all.push_back({.path = path, .known = std::move(known), .mount = {}});
  }
  for (const fs::MountEntry& mount : nacre_mounts()) {
    auto found = std::find_if(all.begin(), all.end(), [&](const Facts& facts) {
      return is_mount_of(mount, facts.path) || is_mount_of(mount, resolved(facts.path));
    });
    if (found == all.end()) {
      all.push_back({.path = mount.source, .known = {}, .mount = mount});
    } else {
      found->mount = mount;
    }
  }
  return all;
}

}  // namespace

json list_volumes() {
  json volumes = json::array();
  for (const Facts& facts : all_facts())
    volumes.push_back(volume_json(facts));
  return volumes;
}

Result<json> volume_at(const std::string& path) {
  const std::string folder = resolved(path);
  for (const Facts& facts : all_facts()) {
    const bool is_mountpoint = facts.mount && facts.mount->mountpoint == folder;
    if (facts.path == path || facts.path == folder || is_mountpoint) return volume_json(facts);
  }
  json volume = volume_json({.path = folder, .known = {}, .mount = {}});
  if (volume["state"] == "missing" || volume["state"] == "not_a_volume") {
    return fail(ErrorCode::not_found,
                fmt::format("{} is no volume: {}", path, volume["state_text"].get<std::string>()));
  }
  return volume;
}

std::string volume_of(const std::string& path) {
  const std::string folder = resolved(path);
  for (const Facts& facts : all_facts()) {
    const bool is_mountpoint = facts.mount && facts.mount->mountpoint == folder;
    if (facts.path == path || facts.path == folder || is_mountpoint) return facts.path;
  }
  return path;
}

std::optional<fs::MountEntry> mount_of(const std::string& path) {
  const std::string folder = resolved(path);
  for (const fs::MountEntry& mount : nacre_mounts()) {
    if (mount.mountpoint == folder || is_mount_of(mount, folder)) return mount;
  }
  return std::nullopt;
}

}  // namespace nacre::tools::web
