// SPDX-License-Identifier: Apache-2.0
// The client's side of the control socket.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "fs/control/mount_table.h"
#include "fs/scrub/scrubber.h"
#include "fs/store/backup_snapshot.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// One connection to the daemon of a mount. Closed by the destructor.
class ControlClient {
 public:
  // Looks wherever a daemon makes sockets. Believed is one that runs as the mount's owner; of one
  // that was found in the volume's folder, which may be somebody else's, the volume's lock must be
  // held and name it as well. not_permitted when the mount belongs to another user (and this is not
  // root), or nobody but others answers; stale when nobody does.
  static Result<ControlClient> connect(const MountEntry& mount);
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&&) = delete;
  ~ControlClient();

  using Timeout = std::optional<std::chrono::milliseconds>;
  // Sends the command and waits for the reply, however long the work takes unless there is a
  // timeout. stale when the daemon ends before, cancelled when the time is up. The error that the
  // daemon gave becomes this call's.
  Result<nlohmann::json> request(std::string_view command, Timeout timeout = std::nullopt);
  // The same with more than a command: message has "command".
  Result<nlohmann::json> request_with(const nlohmann::json& message, Timeout timeout);
  // How the scrub is behind the command.
  Result<nlohmann::json> scrub(ScrubCommand command, std::optional<std::uint64_t> rate,
                               Timeout timeout = std::nullopt);
  // The daemon holds what it lists until this connection is closed. io when the list makes no
  // sense.
  Result<BackupSnapshot> begin_backup();
  // Afterwards: whether the daemon still holds them, as far as it says so within patience. no_space
  // when it had to give them up. A daemon that is gone removes nothing any more.
  Result<> check_backup(std::chrono::milliseconds patience);
  // Hands over the text of a keyring; the errors of KeyringKeeper::replace_recipients().
  Result<> replace_keyring(std::string_view text);
  // After request("prepare_unmount"): the second line.
  Result<> wait_until_closed(Timeout timeout);
  // The process at the other end, by what the kernel says.
  pid_t daemon_pid() const { return daemon_pid_; }
  // Whether the process at the other end may speak for the volume in that folder (absolute, links
  // resolved), whatever it says itself: the mount belongs to root or to the folder's owner, and the
  // volume's lock is held by a writer and names that process. Of a read-only mount, whose daemon
  // the lock does not name, the first alone. not_permitted, with words for the user.
  Result<> check_serves(const MountEntry& mount, const std::string& volume_directory) const;

 private:
  ControlClient(int socket, pid_t daemon_pid) : socket_(socket), daemon_pid_(daemon_pid) {}
  Result<nlohmann::json> read_reply(Timeout timeout);
  int socket_ = -1;
  pid_t daemon_pid_ = 0;
};

// Removes what a daemon that was killed left in its folder. While the mount is still there: later
// another may have its device number, and with it the socket's name. One that answers stays.
void remove_dead_socket(const MountEntry& mount);

// Where a volume directory (absolute, links resolved) is mounted, as far as this user may ask the
// daemons of the mounts in the table. One that does not answer soon is passed over, and so is one
// that may not speak for the volume (check_serves()).
std::optional<MountEntry> find_mount_of_volume(const std::string& volume_directory);

// The same by the lock alone, where nobody answers or may be asked: it names the mount point, and
// is held.
std::optional<MountEntry> find_mount_by_lock(const std::string& volume_directory);

// What is known of a mount's daemon without asking it.
enum class DaemonState : std::uint8_t {
  unknown,       // nothing says that it ended
  runs,          // the volume's lock is held, and names the mount
  ended,         // and left the volume as after a crash, or nothing says how
  ended_closed,  // and the volume is closed
};
struct DaemonLife {
  DaemonState state = DaemonState::unknown;
  pid_t pid = 0;  // as the lock has it; 0: not known
};
DaemonLife look_up_daemon(const MountEntry& mount);

}  // namespace nacre::fs
