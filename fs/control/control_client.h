// SPDX-License-Identifier: Apache-2.0
// The client's side of the control socket: finds the daemon of a mount, checks who it is, and sends
// it commands. control_server.h lists the commands, message.h has their form. Not thread-safe.
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
  // Tries all places where a daemon makes sockets. The daemon must run as the mount's owner. If its
  // socket is in the volume's folder, where other users may write, the volume's lock must be held
  // and name this daemon, too. Errors: not_permitted if the mount belongs to another user and the
  // caller is not root, or if only processes of other users answer; stale if no process answers.
  static Result<ControlClient> connect(const MountEntry& mount);
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&&) = delete;
  ~ControlClient();

  using Timeout = std::optional<std::chrono::milliseconds>;
  // Sends the command and waits for the reply, for as long as the work takes or until the timeout.
  // Errors: stale if the daemon ends first; cancelled at the timeout; the error in the reply.
  Result<nlohmann::json> request(std::string_view command, Timeout timeout = std::nullopt);
  // The same with a message that has "command" and other fields.
  Result<nlohmann::json> request_with(const nlohmann::json& message, Timeout timeout);
  // The same with secret bytes that follow the message. A field of message has their size.
  Result<nlohmann::json> request_with(const nlohmann::json& message, ByteView secret,
                                      Timeout timeout);
  // Sends a command of the scrub and returns the state of the scrub afterwards.
  Result<nlohmann::json> scrub(ScrubCommand command, std::optional<std::uint64_t> rate,
                               Timeout timeout = std::nullopt);
  // The daemon keeps the files that it lists until this connection is closed. Error: io if the list
  // is malformed.
  Result<BackupSnapshot> begin_backup();
  // Called after begin_backup(). Waits at most patience for the daemon to say that it no longer
  // keeps the files: then no_space. A daemon that has ended removes no files, so that is no error.
  Result<> check_backup(std::chrono::milliseconds patience);
  // Sends the text of a new keyring. Errors: those of KeyringKeeper::replace_recipients().
  Result<> replace_keyring(std::string_view text);
  // Called after request("prepare_unmount"). Waits for the second line of the reply.
  Result<> wait_until_closed(Timeout timeout);
  // The process at the other end, as the kernel reports it.
  pid_t daemon_pid() const { return daemon_pid_; }
  // Checks whether the process at the other end serves the volume in that folder (an absolute path
  // with links resolved), independently of what that process says: the mount must belong to root or
  // to the folder's owner, and the volume's lock must be held by a writer and name that process.
  // For a read-only mount, whose daemon the lock does not name, only the first is checked. Error:
  // not_permitted, with a message for the user.
  Result<> check_serves(const MountEntry& mount, const std::string& volume_directory) const;

 private:
  ControlClient(int socket, pid_t daemon_pid) : socket_(socket), daemon_pid_(daemon_pid) {}
  Result<nlohmann::json> read_reply(Timeout timeout);
  int socket_ = -1;
  pid_t daemon_pid_ = 0;
};

// Removes the sockets that a killed daemon left. Called while the mount still exists, because a
// later mount may get the same device number, and with it the same name of the socket. A socket on
// which a process answers stays.
void remove_dead_socket(const MountEntry& mount);

// Finds the mount of a volume's folder (an absolute path with links resolved) by asking the daemons
// in the mount table that this user may ask. A daemon that does not answer soon, or that
// check_serves() refuses, is passed over.
std::optional<MountEntry> find_mount_of_volume(const std::string& volume_directory);

// The same by means of the lock alone, for daemons that do not answer or may not be asked: the lock
// is held and names the mount point.
std::optional<MountEntry> find_mount_by_lock(const std::string& volume_directory);

// The state of a mount's daemon as far as it is known without asking the daemon.
enum class DaemonState : std::uint8_t {
  unknown,       // there is no sign that it ended
  runs,          // the volume's lock is held, and names the mount
  ended,         // it ended and left the volume as after a crash, or in an unknown state
  ended_closed,  // it ended and closed the volume
};
struct DaemonLife {
  DaemonState state = DaemonState::unknown;
  pid_t pid = 0;  // from the lock; 0: not known
};
DaemonLife look_up_daemon(const MountEntry& mount);

}  // namespace nacre::fs
