// SPDX-License-Identifier: Apache-2.0
// The server's side of the control socket of a mounted volume. The user that mounted the volume and
// root may send commands. Each connection has one request and its reply; message.h has their form.
//
//   sync             everything is durable when the reply comes
//   stats            the volume's counters
//   info             what is mounted where, by which process
//   log              the newest messages of the daemon's log
//   file             how a file is stored; file_requests.h
//   trim             rewrites segments until their dead space is free; the reply has the result.
//                    Meanwhile stats shows the progress
//   scrub            with an "action": begins, pauses, resumes or stops a scrub, or only asks for
//                    its state; the reply has the state afterwards
//   backup           commits, and keeps the files of that commit while the connection is open; the
//                    reply and the lines behind it name the files
//   replace_keyring  replaces the volume's keyring by the one in the next line. Only its recipients
//                    may differ
//   rotate, rotation…  rotation_requests.h
//   lock             closes the volume and wipes its keys; the mount stays. Other commands than
//                    info, log, unlock and prepare_unmount are then refused
//   unlock           opens it again; the volume key follows, with "key_size_bytes" bytes
//   prepare_unmount  commits everything and replies as info does; the connection stays open, and a
//                    second line tells how the volume was closed
//
// Connections have threads of their own and are bounded in number, size and time, so that no client
// can hold up the filesystem.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fs/control/closing_waiters.h"
#include "fs/control/file_chunks.h"
#include "fs/control/recent_messages.h"
#include "fs/control/request_metrics.h"
#include "fs/control/socket_path.h"
#include "fs/mount/mounted.h"
#include "fs/rotation/rotation.h"
#include "fs/scrub/scrubber.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

inline constexpr std::size_t control_connection_count_max = 16;

struct MountDescription {
  unsigned device_major = 0;
  unsigned device_minor = 0;
  std::string volume_directory;  // absolute
  std::string mountpoint;        // absolute
  std::string volume_id;
  std::string label;
  std::uint32_t chunk_size_bytes = 0;
  bool read_only = false;
};

// Carries the commands out. Called from several threads; may block.
class ControlHandler {
 public:
  virtual ~ControlHandler() = default;
  // Called before what follows, up to rotation(), and kept until that is done: the volume stays
  // open. Errors: not_permitted if it is locked; busy.
  virtual Result<std::shared_ptr<const void>> begin_command() {
    return std::shared_ptr<const void>();
  }
  virtual bool is_locked() { return false; }
  // Return false if there was nothing to do.
  virtual Result<bool> lock() {
    return fail(ErrorCode::unsupported, "this mount cannot be locked");
  }
  virtual Result<bool> unlock(ByteView /*volume_key*/) { return false; }
  virtual Result<> sync() = 0;
  virtual VolumeStats stats() = 0;
  virtual RequestStats request_stats() { return {}; }  // of the kernel's requests
  virtual Result<FileChunks> look_at_file(metadata::InodeNumber, metadata::ChunkIndex) {
    return fail(ErrorCode::unsupported, "this mount does not tell how files are stored");
  }
  // The transport of the kernel's requests, e.g. "/dev/fuse". Empty if it is not known.
  virtual std::string transport() { return {}; }
  // How the daemon is kept from system calls that it does not need, e.g. "seccomp"; "off" if it is
  // not kept from them. Empty if it is not known.
  virtual std::string sandbox() { return {}; }
  // The messages of the log whose numbers are larger than the argument, the oldest first.
  virtual Result<std::vector<LogMessage>> messages_after(std::uint64_t) {
    return fail(ErrorCode::unsupported, "this mount does not keep its messages");
  }
  virtual Result<CompactionReport> trim() = 0;
  virtual Result<metadata::ScrubRow> scrub(ScrubCommand command,
                                           std::optional<std::uint64_t> rate) = 0;
  virtual Result<BackupSnapshot> begin_backup() = 0;
  virtual std::uint64_t keyring_generation() = 0;  // also while it is locked
  // text comes from a user that may control the mount but need not know its keys, so KeyringKeeper
  // checks it.
  virtual Result<> replace_recipients(std::string_view text) = 0;
  virtual Rotation* rotation() { return nullptr; }  // null: this mount cannot rotate its keys
};

class ControlServer {
 public:
  // handler is used until begin_closing() returns. Removes sockets that earlier mounts left behind:
  // those with the same device number, and, unless the mount is read-only, all in the volume's
  // folder. For the latter the caller holds the volume's lock.
  static Result<std::unique_ptr<ControlServer>> start(const MountDescription& description,
                                                      ControlHandler& handler);
  // Closes all connections. If finish() was not called, clients that prepared to unmount get no
  // second line.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Called when the mount is gone. Removes the sockets, takes no more connections, and returns when
  // no command uses the handler any more.
  void begin_closing();
  // Sends the second line to clients that prepared to unmount. Called after begin_closing().
  void finish(const Result<>& result);

  // The path of the socket that clients try first.
  std::string socket_path() const;

 private:
  struct Connection {
    int socket = -1;
    bool finished = false;  // guarded by mutex_
    std::thread thread;
  };
  // A socket in one of the places where clients look.
  struct Listener {
    SocketFolder folder;
    std::string name;
    ino_t inode = 0;
    int socket = -1;
  };
  ControlServer(const MountDescription& description, ControlHandler& handler);
  Result<> listen();
  Result<> listen_in(Result<SocketFolder> folder);
  static Result<> listen_at(Listener& listener);
  void accept_loop();
  void wake_acceptor() const;
  void take_connection(int listener);
  void serve(Connection& connection);
  // What follows the reply to a request.
  struct Sequel {
    bool wait_for_close = false;  // a second line tells how the volume was closed
    std::optional<BackupSnapshot> backup;
  };
  nlohmann::json handle(std::string_view request, int socket, Sequel& sequel);
  Result<> replace_keyring(int socket);
  nlohmann::json handle_lock();
  nlohmann::json handle_unlock(int socket, const nlohmann::json& message);
  nlohmann::json handle_open(std::string_view name, const nlohmann::json& message, int socket,
                             Sequel& sequel);
  static Result<std::vector<metadata::RecipientSeal>> read_seals(int socket,
                                                                 const nlohmann::json& message);
  nlohmann::json handle_log(const nlohmann::json& message);
  nlohmann::json handle_scrub(const nlohmann::json& message);
  Result<> serve_backup(int socket, const BackupSnapshot& snapshot);
  nlohmann::json info();
  void reap(bool everything);

  const MountDescription description_;
  ControlHandler& handler_;
  std::vector<Listener> listeners_;
  int wake_ = -1;
  std::thread acceptor_;

  ClosingWaiters waiting_for_close_;
  Mutex keyring_mutex_;  // held while a keyring is received: one large message at a time
  Mutex mutex_;
  std::list<Connection> connections_ NACRE_GUARDED_BY(mutex_);
  bool closing_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::fs
