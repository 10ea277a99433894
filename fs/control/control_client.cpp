// SPDX-License-Identifier: Apache-2.0
#include "fs/control/control_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fs/control/dead_mount.h"
#include "fs/control/message.h"
#include "fs/control/socket_path.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/text/exact_bytes.h"

namespace nacre::fs {

namespace {

// A stopped daemon takes no connections, and once its queue is full connect() waits for it.
constexpr timeval connect_timeout{.tv_sec = 2, .tv_usec = 0};

// A connected socket, or -1 with errno, which is EAGAIN if the daemon took no connection in time. A
// symbolic link is not followed, because it may lead to another user's socket.
int connect_to(const SocketFolder& folder, const std::string& name) {
  const int file = ::openat(folder.descriptor(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat status = {};
  int socket = -1;
  int error = ENOTSOCK;
  if (::fstat(file, &status) == 0 && S_ISSOCK(status.st_mode)) {
    socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    error = errno;
  }
  if (socket >= 0) {
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &connect_timeout, sizeof connect_timeout);
  }
  if (socket >= 0 &&
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    error = errno;
    ::close(socket);
    socket = -1;
  }
  ::close(file);
  errno = error;
  return socket;
}

// Any user may mount a filesystem that claims this type and this source. So the mount is believed
// only if it belongs to root or to the owner of the volume's folder.
bool may_mount(uid_t owner, const std::string& volume_directory) {
  struct stat status = {};
  return owner == 0 || (::stat(volume_directory.c_str(), &status) == 0 && status.st_uid == owner);
}

std::string words_for(const DaemonLife& life, const MountEntry& mount) {
  switch (life.state) {
    case DaemonState::runs:
      return fmt::format(
          ". The volume's lock is held, so its daemon (process {}) runs, but its sockets are not "
          "to "
          "be had from here: give the command where it was mounted. 'nacre umount {}' works "
          "without them",
          life.pid, mount.mountpoint);
    case DaemonState::ended:
    case DaemonState::ended_closed:
      return fmt::format(". It has ended: 'nacre umount {}' takes the mount away",
                         mount.mountpoint);
    default:
      return {};
  }
}

// Whether the kernel says that no daemon serves the mount any more. A daemon that hangs still
// serves it, and would block this question for ever; so a thread asks, which ends with this
// process. One thread asks for all that want to know the same.
class DeadMountQuestions {
 public:
  // Called with a shared pointer to this, which the thread keeps.
  static std::shared_future<bool> ask(const std::shared_ptr<DeadMountQuestions>& all,
                                      const std::string& mountpoint) {
    const LockGuard lock(all->mutex_);
    const auto [place, is_new] = all->open_.try_emplace(mountpoint);
    if (!is_new) return place->second;
    const auto said = std::make_shared<std::promise<bool>>();
    const std::shared_future<bool> answer = said->get_future();
    place->second = answer;
    std::thread([all, said, mountpoint] {
      said->set_value(is_dead_mount(mountpoint));
      const LockGuard own_lock(all->mutex_);
      all->open_.erase(mountpoint);
    }).detach();
    return answer;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_future<bool>> open_ NACRE_GUARDED_BY(mutex_);
};

bool is_disconnected(const std::string& mountpoint) {
  constexpr std::chrono::seconds patience{5};
  static const auto questions = std::make_shared<DeadMountQuestions>();
  const auto answer = DeadMountQuestions::ask(questions, mountpoint);
  return answer.wait_for(patience) == std::future_status::ready && answer.get();
}

}  // namespace

Result<ControlClient> ControlClient::connect(const MountEntry& mount) {
  if (::geteuid() != 0 && ::geteuid() != mount.owner) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{} was mounted by user {}: only that user and root may do this",
                            mount.mountpoint, mount.owner));
  }
  std::string tried;
  std::optional<Error> refused;
  for (const auto& folder : SocketFolder::find(mount.owner, mount.source)) {
    const std::string name = folder.name_of(mount.device_major, mount.device_minor);
    const int socket = connect_to(folder, name);
    if (socket < 0) {
      tried += fmt::format(" ({}/{}: {})", folder.path(), name,
                           errno == EAGAIN ? "the daemon does not answer" : strerror(errno));
      continue;
    }
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        peer.uid != mount.owner) {
      refused = Error{ErrorCode::not_permitted,
                      fmt::format("{}/{} is served by user {}, but user {} mounted {}",
                                  folder.path(), name, peer.uid, mount.owner, mount.mountpoint)};
    } else if (folder.is_volume() && !metadata::is_writer(folder.path(), peer.pid)) {
      refused = Error{ErrorCode::not_permitted,
                      fmt::format("{}/{} is served by process {}, which does not hold the lock of "
                                  "that volume",
                                  folder.path(), name, peer.pid)};
    } else {
      return ControlClient(socket, peer.pid);
    }
    ::close(socket);
  }
  if (refused) return tl::unexpected(*refused);
  return fail(ErrorCode::stale, fmt::format("no daemon answers for {}{}{}", mount.mountpoint, tried,
                                            words_for(look_up_daemon(mount), mount)));
}

void remove_dead_socket(const MountEntry& mount) {
  for (const auto& folder : SocketFolder::find(mount.owner, mount.source)) {
    const std::string name = folder.name_of(mount.device_major, mount.device_minor);
    const int socket = connect_to(folder, name);
    if (socket >= 0) {
      ::close(socket);
    } else if (errno == ECONNREFUSED) {
      ::unlinkat(folder.descriptor(), name.c_str(), 0);
    }
  }
}

ControlClient::ControlClient(ControlClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), daemon_pid_(other.daemon_pid_) {}

ControlClient::~ControlClient() {
  if (socket_ >= 0) ::close(socket_);
}

Result<nlohmann::json> ControlClient::request(std::string_view command, Timeout timeout) {
  return request_with({{"command", command}}, timeout);
}

Result<nlohmann::json> ControlClient::request_with(const nlohmann::json& message, Timeout timeout) {
  NACRE_TRY(write_line(socket_, metadata::to_json_line(message), request_timeout));
  return read_reply(timeout);
}

Result<nlohmann::json> ControlClient::request_with(const nlohmann::json& message, ByteView secret,
                                                   Timeout timeout) {
  NACRE_TRY(write_line(socket_, metadata::to_json_line(message), request_timeout));
  // A daemon that refuses stops reading, so the write may fail; its reply tells why.
  const auto written = write_bytes(socket_, secret, request_timeout);
  auto reply = read_reply(timeout);
  if (!reply && reply.error().code == ErrorCode::stale && !written) {
    return tl::unexpected(written.error());
  }
  return reply;
}

Result<nlohmann::json> ControlClient::scrub(ScrubCommand command, std::optional<std::uint64_t> rate,
                                            Timeout timeout) {
  nlohmann::json message = {{"command", "scrub"}, {"action", to_string(command)}};
  if (rate) message["rate_bytes_per_second"] = *rate;
  NACRE_ASSIGN(const auto reply, request_with(message, timeout));
  const auto scrub = reply.find("scrub");
  if (scrub != reply.end() && scrub->is_object()) return *scrub;
  return fail(ErrorCode::io,
              fmt::format("the daemon (process {}) does not say how the scrub is", daemon_pid_));
}

Result<BackupSnapshot> ControlClient::begin_backup() {
  const auto senseless = [&] {
    return fail(ErrorCode::io,
                fmt::format("the daemon (process {}) gives no proper list of files", daemon_pid_));
  };
  NACRE_ASSIGN(const auto reply, request("backup"));
  const auto backup = reply.find("backup");
  if (backup == reply.end() || !backup->is_object()) return senseless();
  BackupSnapshot snapshot;
  const auto current = backup->find("current");
  const auto count = backup->find("file_count");
  if (current == backup->end() || !current->is_array() || count == backup->end() ||
      !count->is_number_unsigned()) {
    return senseless();
  }
  for (const auto& byte : *current) {
    if (!byte.is_number_unsigned() || byte.get<std::uint64_t>() > 255) return senseless();
    snapshot.current.push_back(byte.get<Byte>());
  }
  while (snapshot.files.size() < count->get<std::uint64_t>()) {
    NACRE_ASSIGN(const auto line, read_reply(request_timeout));
    const auto files = line.find("files");
    if (files == line.end() || !files->is_array() || files->empty()) return senseless();
    for (const auto& file : *files) {
      if (!file.is_array() || file.size() != 2 || !file[0].is_string() ||
          !file[1].is_number_unsigned()) {
        return senseless();
      }
      snapshot.files.push_back(
          {.path = file[0].get<std::string>(), .size = file[1].get<std::uint64_t>()});
    }
  }
  return snapshot;
}

Result<> ControlClient::check_backup(std::chrono::milliseconds patience) {
  pollfd entry{.fd = socket_, .events = POLLIN, .revents = 0};
  if (::poll(&entry, 1, static_cast<int>(patience.count())) <= 0) return {};
  const auto line = read_line(socket_, reply_size_bytes_max, request_timeout);
  if (!line || line->empty()) return {};
  NACRE_ASSIGN(const auto reply, parse_message(*line));
  return reply_result(reply);
}

Result<> ControlClient::replace_keyring(std::string_view text) {
  const nlohmann::json command = {{"command", "replace_keyring"}};
  const nlohmann::json keyring = {{"keyring", text}};
  NACRE_TRY(write_line(socket_, metadata::to_json_line(command), request_timeout));
  // A daemon that refuses stops reading, so the write may fail; its reply tells why.
  const auto written = write_line(socket_, metadata::to_json_line(keyring), request_timeout);
  const auto reply = read_reply(std::nullopt);
  if (!reply)
    return tl::unexpected(reply.error().code == ErrorCode::stale && !written ? written.error()
                                                                             : reply.error());
  return {};
}

Result<> ControlClient::wait_until_closed(Timeout timeout) {
  NACRE_TRY(read_reply(timeout));
  return {};
}

Result<nlohmann::json> ControlClient::read_reply(Timeout timeout) {
  const auto line = read_line(socket_, reply_size_bytes_max, timeout);
  if (!line && line.error().code == ErrorCode::cancelled) {
    return fail(ErrorCode::cancelled,
                fmt::format("the daemon (process {}) does not answer", daemon_pid_));
  }
  if (!line) {
    return fail(ErrorCode::stale, fmt::format("the daemon (process {}) ended without an answer: {}",
                                              daemon_pid_, line.error().message));
  }
  NACRE_ASSIGN(auto reply, parse_message(*line));
  NACRE_TRY(reply_result(reply));
  return reply;
}

Result<> ControlClient::check_serves(const MountEntry& mount,
                                     const std::string& volume_directory) const {
  if (!may_mount(mount.owner, volume_directory)) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{} says that it is the mount of {}, but user {}, to whom the mount "
                            "belongs, is neither root nor the owner of that folder",
                            mount.mountpoint, volume_directory, mount.owner));
  }
  if (!mount.read_only && !metadata::is_writer(volume_directory, daemon_pid_)) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{} says that it is the mount of {}, but process {}, which serves it, "
                            "does not hold the lock of that volume; if the volume is mounted "
                            "within a container, give the command there",
                            mount.mountpoint, volume_directory, daemon_pid_));
  }
  return {};
}

std::optional<MountEntry> find_mount_of_volume(const std::string& volume_directory) {
  constexpr std::chrono::milliseconds patience{10'000};
  const auto table = read_mount_table();
  if (!table) return std::nullopt;
  for (const auto& mount : *table) {
    if (mount.type != nacre_mount_type || !may_mount(mount.owner, volume_directory)) continue;
    auto client = ControlClient::connect(mount);
    if (!client) continue;
    const auto info = client->request("info", patience);
    if (!info) continue;
    // The lock is the best source.
    if (metadata::is_writer(volume_directory, client->daemon_pid())) return mount;
    if (metadata::get_bytes(*info, "volume") == volume_directory &&
        client->check_serves(mount, volume_directory)) {
      return mount;
    }
  }
  return std::nullopt;
}

std::optional<MountEntry> find_mount_by_lock(const std::string& volume_directory) {
  const auto holder = metadata::read_lock(volume_directory);
  const auto table = read_mount_table();
  if (!holder || !holder->is_held || !table) return std::nullopt;
  for (const auto& mount : *table) {
    if (mount.type == nacre_mount_type && holder->names(mount.mountpoint) &&
        mount.source == volume_directory && may_mount(mount.owner, volume_directory)) {
      return mount;
    }
  }
  return std::nullopt;
}

DaemonLife look_up_daemon(const MountEntry& mount) {
  // The lock tells of this mount only if it names this mount or none. The mount's source is a claim
  // of the user that mounted it.
  std::optional<metadata::LockState> lock;
  if (mount.source.starts_with('/') && !mount.read_only && may_mount(mount.owner, mount.source)) {
    lock = metadata::read_lock(mount.source);
  }
  const bool is_named = lock && lock->pid != 0 && lock->names(mount.mountpoint);
  const bool is_closed = lock && !lock->is_held && lock->pid == 0;
  DaemonLife life;
  if (is_named) life.pid = static_cast<pid_t>(lock->pid);
  // A daemon holds the lock for longer than its mount exists.
  if (is_disconnected(mount.mountpoint) || is_closed || (is_named && !lock->is_held)) {
    life.state = is_closed ? DaemonState::ended_closed : DaemonState::ended;
  } else if (is_named) {
    life.state = DaemonState::runs;
  }
  return life;
}

}  // namespace nacre::fs
