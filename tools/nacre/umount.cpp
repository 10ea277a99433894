// SPDX-License-Identifier: Apache-2.0
// nacre umount MOUNTPOINT: commits, unmounts, and returns when the daemon has closed the volume and
// ended. umount(8) and fusermount3 unmount just as well, but return before the daemon has.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "fs/fuse/mount_point.h"
#include "metadata/backing/volume_lock.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/mount_users.h"
#include "tools/nacre/mounted_volume.h"
#include "tools/nacre/patience.h"

namespace nacre::tools {

namespace {

constexpr std::chrono::milliseconds close_timeout{120'000};
constexpr std::chrono::milliseconds exit_timeout{30'000};
constexpr std::chrono::milliseconds lock_check_interval{50};

// A process that can be waited for without being its parent. None if it has ended already.
class Process {
 public:
  explicit Process(pid_t pid) : descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  bool wait_for_end(std::chrono::milliseconds timeout) const {
    if (descriptor_ < 0) return true;
    pollfd entry{.fd = descriptor_, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(timeout.count())) != 0;
  }

 private:
  int descriptor_;
};

// The mount stays if something could not be made durable; the user decides.
int refuse(const fs::MountEntry& mount, const Error& error) {
  const int code = report(error);
  print_note(fmt::format("{} stays mounted. To unmount it all the same: {} {}", mount.mountpoint,
                         ::geteuid() == 0 ? "umount" : "fusermount3 -u", mount.mountpoint));
  return code;
}

bool same_device(const fs::MountEntry& a, const fs::MountEntry& b) {
  return a.device_major == b.device_major && a.device_minor == b.device_minor;
}

std::string durable_notice(const fs::MountEntry& mount) {
  return fmt::format(
      "waiting for the volume at {} to make everything durable: its disk is slow, or does not "
      "answer. Ctrl-C ends the waiting only and leaves the volume mounted",
      mount.mountpoint);
}

// Unmounts a mount whose daemon has ended.
int unmount_dead(const fs::MountEntry& mount, const fs::DaemonLife& life) {
  fs::remove_dead_socket(mount);
  const auto unmounted =
      fs::unmount(mount.mountpoint, fs::UnmountMode::detach, fs::MountEnvironment::current());
  if (!unmounted) return report(unmounted.error());
  if (mount.read_only || life.state == fs::DaemonState::ended_closed) {
    print_note(fmt::format("{} is unmounted. Its daemon had ended already; {}", mount.mountpoint,
                           mount.read_only ? "the mount was read-only" : "the volume is closed"));
    return exit_fine;
  }
  print_warning(
      fmt::format("{} is unmounted, but its daemon had ended without closing the volume: "
                  "what was not synced before may be lost. The next mount recovers the "
                  "rest",
                  mount.mountpoint));
  return exit_operational;
}

// The daemon closes the volume by itself once it is unmounted; the lock tells when, and how.
int wait_for_lock(const fs::MountEntry& mount, const fs::DaemonLife& life) {
  const Patience patience(
      fmt::format("{} is unmounted; waiting for its daemon{} to close the volume", mount.mountpoint,
                  life.pid == 0 ? "" : fmt::format(" (process {})", life.pid)));
  const auto deadline = std::chrono::steady_clock::now() + close_timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    const auto lock = metadata::read_lock(mount.source);
    if (lock && !lock->is_held && lock->pid == 0) return exit_fine;
    if (lock && !lock->is_held) {
      return report({ErrorCode::io,
                     fmt::format("{} is unmounted, but its daemon (process {}) could not close the "
                                 "volume well; its log says why. The next mount recovers what was "
                                 "synced",
                                 mount.mountpoint, lock->pid)});
    }
    std::this_thread::sleep_for(lock_check_interval);
  }
  return report({ErrorCode::busy,
                 fmt::format("{} is unmounted here, but the volume's lock is still held: another "
                             "mount namespace holds the mount, or the disk does not answer",
                             mount.mountpoint)});
}

Result<> unmount_when_free(const fs::MountEntry& mount) {
  ::chdir("/") == 0 ? void() : void();  // else this process may be what uses the mount
  auto unmounted =
      fs::unmount(mount.mountpoint, fs::UnmountMode::when_free, fs::MountEnvironment::current());
  if (!unmounted && unmounted.error().code == ErrorCode::busy) {
    return fail(ErrorCode::busy,
                fmt::format("{} is in use: {}. Everything written so far is durable",
                            mount.mountpoint, who_uses(mount)));
  }
  return unmounted;
}

// If the mount is bound to a second place, it lives on there, and so does the daemon.
bool stays_elsewhere(const fs::MountEntry& mount) {
  const auto table = fs::read_mount_table();
  if (!table) return false;
  const auto other = std::find_if(table->begin(), table->end(),
                                  [&](const auto& entry) { return same_device(entry, mount); });
  if (other == table->end()) return false;
  print_note(fmt::format("{} is unmounted; the volume stays mounted at {}", mount.mountpoint,
                         other->mountpoint));
  return true;
}

// Nobody answers. Perhaps only the sockets are gone and the daemon runs, so the lock is looked up.
int unmount_unasked(const fs::MountEntry& mount) {
  const auto life = fs::look_up_daemon(mount);
  if (life.state == fs::DaemonState::ended || life.state == fs::DaemonState::ended_closed) {
    return unmount_dead(mount, life);
  }
  if (!mount.read_only) {
    const Patience patience(durable_notice(mount));
    const auto written = write_back(mount.mountpoint);
    if (!written && written.error().code != ErrorCode::permission) {
      return refuse(mount, written.error());
    }
  }
  if (const auto unmounted = unmount_when_free(mount); !unmounted) {
    return report(unmounted.error());
  }
  if (mount.read_only || stays_elsewhere(mount)) return exit_fine;
  if (life.state == fs::DaemonState::runs) return wait_for_lock(mount, life);
  print_warning(
      fmt::format("{} is unmounted, and its daemon closes the volume; it could not be asked "
                  "when: its log says so",
                  mount.mountpoint));
  return exit_operational;
}

int unmount_volume(const std::string& path) {
  const auto mount = fs::find_nacre_mount(path);
  if (!mount) return report(mount.error());
  {
    const auto probe = fs::ControlClient::connect(*mount);
    if (!probe && probe.error().code == ErrorCode::stale) return unmount_unasked(*mount);
    if (!probe) return report(probe.error());
  }
  std::optional<Patience> patience(std::in_place, durable_notice(*mount));
  if (!mount->read_only) {
    const auto written = write_back(mount->mountpoint);
    // Root may not look into another user's mount. Unmounting makes the kernel write back as well.
    if (!written && written.error().code != ErrorCode::permission) {
      return refuse(*mount, written.error());
    }
  }
  auto client = fs::ControlClient::connect(*mount);
  if (!client) return report(client.error());
  const Process daemon(client->daemon_pid());
  if (const auto prepared = client->request("prepare_unmount"); !prepared) {
    return refuse(*mount, prepared.error());
  }

  patience.reset();
  if (const auto unmounted = unmount_when_free(*mount); !unmounted) {
    return report(unmounted.error());
  }
  if (stays_elsewhere(*mount)) return exit_fine;

  patience.emplace(
      fmt::format("{} is unmounted; waiting for its daemon (process {}) to close the "
                  "volume. Everything written so far is durable",
                  mount->mountpoint, client->daemon_pid()));
  const auto closed = client->wait_until_closed(close_timeout);
  if (!closed && closed.error().code == ErrorCode::cancelled) {
    return report({ErrorCode::busy,
                   fmt::format("{} is unmounted here and everything written to it is durable, but "
                               "its daemon (process {}) still runs: another mount namespace "
                               "holds the mount, or the disk does not answer",
                               mount->mountpoint, client->daemon_pid())});
  }
  if (!closed) return report(closed.error());
  if (!daemon.wait_for_end(exit_timeout)) {
    return report({ErrorCode::busy, fmt::format("the volume is closed, but its daemon (process {}) "
                                                "does not end",
                                                client->daemon_pid())});
  }
  return exit_fine;
}

}  // namespace

void add_umount_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("umount", "Unmount a volume and wait until it is closed and durable");
  auto mountpoint = std::make_shared<std::string>();
  command->add_option("MOUNTPOINT", *mountpoint, "Where the volume is mounted")->required();
  command->footer(
      "Examples:\n"
      "  nacre umount ~/private\n"
      "Exit status: 0 unmounted and durable, 2 usage, 8 failed, 32 in use");
  command->callback(
      [&action, mountpoint] { action = [mountpoint] { return unmount_volume(*mountpoint); }; });
}

}  // namespace nacre::tools
