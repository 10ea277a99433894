// SPDX-License-Identifier: Apache-2.0
#include "fs/control/control_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "fs/control/file_requests.h"
#include "fs/control/message.h"
#include "fs/control/mount_stats.h"
#include "fs/control/rotation_requests.h"
#include "fs/control/stats_json.h"
#include "metadata/keys/keyring.h"
#include "metadata/text/exact_bytes.h"

namespace nacre::fs {

namespace {

using metadata::to_json_line;

// The server waits at most this long for a client to take its reply.
constexpr std::chrono::milliseconds reply_timeout{5000};
constexpr std::chrono::milliseconds refusal_timeout{100};
// A backup hears within this time that its files are no longer kept. If a file is missing, the
// backup waits longer than this before it reports another reason.
constexpr std::chrono::milliseconds hold_check_interval{100};

tl::unexpected<Error> system_failure(std::string_view what) {
  return fail(ErrorCode::io, fmt::format("{}: {}", what, strerror(errno)));
}

void refuse(int socket, ErrorCode code, std::string message) {
  // The result is ignored, because a client that is refused may not be reading.
  static_cast<void>(
      write_line(socket, to_json_line(error_reply({code, std::move(message)})), refusal_timeout));
  ::close(socket);
}

}  // namespace

ControlServer::ControlServer(const MountDescription& description, ControlHandler& handler)
    : description_(description), handler_(handler) {}

Result<std::unique_ptr<ControlServer>> ControlServer::start(const MountDescription& description,
                                                            ControlHandler& handler) {
  std::unique_ptr<ControlServer> server(new ControlServer(description, handler));
  NACRE_TRY(server->listen());
  try {
    server->acceptor_ = std::thread([raw = server.get()] { raw->accept_loop(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::out_of_memory, fmt::format("starting a thread: {}", error.what()));
  }
  return server;
}

std::string ControlServer::socket_path() const {
  return listeners_.front().folder.path() + "/" + listeners_.front().name;
}

// One place is enough, because clients look in all of them. The second is for the case that the
// first is removed. The volume's folder comes last, because a plain copy of it would meet a socket,
// and a read-only mount creates nothing there.
Result<> ControlServer::listen() {
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return system_failure("eventfd");
  const auto own = listen_in(SocketFolder::make_own(description_.mountpoint));
  const auto second = listen_in(SocketFolder::make_fallback(description_.mountpoint));
  if (!description_.read_only) {
    if (auto volume = SocketFolder::of_volume(description_.volume_directory)) {
      volume->remove_stale_sockets();
      if (!second) static_cast<void>(listen_in(std::move(volume)));
    }
  }
  if (listeners_.empty()) return own;
  return {};
}

Result<> ControlServer::listen_in(Result<SocketFolder> folder) {
  if (!folder) return tl::unexpected(folder.error());
  Listener listener{.folder = std::move(*folder)};
  listener.name = listener.folder.name_of(description_.device_major, description_.device_minor);
  for (const auto& other : listeners_) {
    if (other.folder.path() == listener.folder.path()) return {};
  }
  if (auto listening = listen_at(listener); !listening) {
    if (listener.socket >= 0) ::close(listener.socket);
    return add_context(listening.error(), listener.folder.path() + "/" + listener.name);
  }
  listeners_.push_back(std::move(listener));
  return {};
}

Result<> ControlServer::listen_at(Listener& listener) {
  const int folder = listener.folder.descriptor();
  const char* const name = listener.name.c_str();
  listener.socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener.socket < 0) return system_failure("socket");
  // bind() gives the file the mode of the socket, so it is never open to other users.
  if (::fchmod(listener.socket, 0600) != 0) return system_failure("fchmod");
  if (::unlinkat(folder, name, 0) != 0 && errno != ENOENT) {
    return system_failure("removing an old socket");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = listener.folder.address_of(listener.name);
  if (path.size() >= sizeof address.sun_path) return fail(ErrorCode::name_too_long, path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::bind(listener.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_failure("bind");
  }
  struct stat status {};
  if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return system_failure("stat");
  listener.inode = status.st_ino;
  if (::listen(listener.socket, static_cast<int>(control_connection_count_max)) != 0) {
    return system_failure("listen");
  }
  return {};
}

ControlServer::~ControlServer() {
  begin_closing();
  if (wake_ >= 0) ::close(wake_);
}

void ControlServer::begin_closing() {
  {
    const LockGuard lock(mutex_);
    if (closing_) return;
    closing_ = true;
  }
  for (const auto& listener : listeners_) {
    // A later mount may have the same device number, and with it the same name.
    struct stat status {};
    const int folder = listener.folder.descriptor();
    if (::fstatat(folder, listener.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        status.st_ino == listener.inode) {
      ::unlinkat(folder, listener.name.c_str(), 0);
    }
  }
  if (acceptor_.joinable()) {
    wake_acceptor();
    acceptor_.join();
  }
  for (auto& listener : listeners_) {
    ::close(listener.socket);
    listener.socket = -1;
  }
  {
    // Clients that have not sent a request yet get no answer any more.
    const LockGuard lock(mutex_);
    for (auto& connection : connections_) {
      if (!connection.finished) ::shutdown(connection.socket, SHUT_RD);
    }
  }
  reap(true);
}

void ControlServer::finish(const Result<>& result) {
  const nlohmann::json reply = result ? nlohmann::json{{"ok", true}} : error_reply(result.error());
  waiting_for_close_.tell(to_json_line(reply), refusal_timeout);
}

void ControlServer::wake_acceptor() const {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_, &one, sizeof one));
}

void ControlServer::accept_loop() {
  while (true) {
    std::vector<pollfd> entries = {{.fd = wake_, .events = POLLIN, .revents = 0}};
    for (const auto& listener : listeners_)
      entries.push_back({.fd = listener.socket, .events = POLLIN, .revents = 0});
    waiting_for_close_.append_to(entries);
    if (::poll(entries.data(), entries.size(), -1) < 0) {
      if (errno != EINTR) return;
      continue;
    }
    if (entries[0].revents != 0) {
      std::uint64_t count = 0;
      static_cast<void>(!::read(wake_, &count, sizeof count));
      const LockGuard lock(mutex_);
      if (closing_) return;
    }
    try {
      reap(false);
      waiting_for_close_.drop_those_gone();
      for (std::size_t i = 1; i <= listeners_.size(); ++i) {
        if (entries[i].revents != 0) take_connection(entries[i].fd);
      }
    } catch (const std::exception& error) {
      spdlog::warn("control socket: {}", error.what());
    }
  }
}

void ControlServer::take_connection(int listener) {
  const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) {
    // If descriptors or memory run out, the queue stays full; waiting keeps this loop from
    // spinning.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      pollfd entry{.fd = wake_, .events = POLLIN, .revents = 0};
      ::poll(&entry, 1, 100);
    }
    return;
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      (peer.uid != 0 && peer.uid != ::geteuid())) {
    refuse(socket, ErrorCode::not_permitted,
           fmt::format("only user {} and root may control this mount", ::geteuid()));
    return;
  }
  Connection* connection = nullptr;
  {
    const LockGuard lock(mutex_);
    if (connections_.size() < control_connection_count_max) {
      connection = &connections_.emplace_back();
      connection->socket = socket;
    }
  }
  if (connection == nullptr) {
    refuse(socket, ErrorCode::busy, "too many requests at once; try again");
    return;
  }
  try {
    connection->thread = std::thread([this, connection] { serve(*connection); });
  } catch (const std::system_error& error) {
    refuse(socket, ErrorCode::out_of_memory, fmt::format("starting a thread: {}", error.what()));
    const LockGuard lock(mutex_);
    connections_.pop_back();
  }
}

void ControlServer::serve(Connection& connection) {
  bool keep_open = false;
  try {
    nlohmann::json reply;
    Sequel sequel;
    if (const auto request =
            read_line(connection.socket, request_size_bytes_max, request_timeout)) {
      reply = handle(*request, connection.socket, sequel);
    } else {
      reply = error_reply(request.error());
    }
    const auto written = write_line(connection.socket, to_json_line(reply), reply_timeout);
    keep_open = sequel.wait_for_close && written;
    if (sequel.backup && written) {
      static_cast<void>(serve_backup(connection.socket, *sequel.backup));
    }
  } catch (const std::exception& error) {
    keep_open = false;
    spdlog::warn("control socket: {}", error.what());
  }
  {
    const LockGuard lock(mutex_);
    if (keep_open) {
      waiting_for_close_.add(connection.socket);
    } else {
      ::close(connection.socket);
    }
    connection.finished = true;
  }
  wake_acceptor();
}

// Returns when the client closes the connection, when the server closes, or when the volume no
// longer keeps the files; in the last case the client is told.
Result<> ControlServer::serve_backup(int socket, const BackupSnapshot& snapshot) {
  for (std::size_t first = 0; first < snapshot.files.size(); first += backup_line_count_max) {
    auto files = nlohmann::json::array();
    const std::size_t end = std::min(snapshot.files.size(), first + backup_line_count_max);
    for (std::size_t i = first; i < end; ++i)
      files.push_back({snapshot.files[i].path, snapshot.files[i].size});
    const nlohmann::json line = {{"ok", true}, {"files", std::move(files)}};
    NACRE_TRY(write_line(socket, to_json_line(line), reply_timeout));
  }
  while (true) {
    pollfd entry{.fd = socket, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(hold_check_interval.count()));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return {};
    if (!snapshot.hold || !snapshot.hold->is_given_up()) continue;
    const Error error{ErrorCode::no_space,
                      fmt::format("{}: its disk is full, so what was deleted or overwritten there "
                                  "since the backup began is no longer kept for it, and writing "
                                  "goes on; make room on that disk",
                                  description_.volume_directory)};
    return write_line(socket, to_json_line(error_reply(error)), reply_timeout);
  }
}

nlohmann::json ControlServer::handle(std::string_view request, int socket, Sequel& sequel) {
  const auto message = parse_message(request);
  if (!message) return error_reply(message.error());
  const auto command = message->find("command");
  if (command == message->end() || !command->is_string()) {
    return error_reply({ErrorCode::invalid_argument, "the request names no command"});
  }
  const auto& name = command->get_ref<const std::string&>();
  if (name == "info") return info();
  if (name == "log") return handle_log(*message);
  if (name == "lock") return handle_lock();
  if (name == "unlock") return handle_unlock(socket, *message);
  if (name == "prepare_unmount" && handler_.is_locked()) {
    sequel.wait_for_close = true;
    return info();
  }
  const auto command_under_way = handler_.begin_command();
  if (!command_under_way) return error_reply(command_under_way.error());
  return handle_open(name, *message, socket, sequel);
}

nlohmann::json ControlServer::handle_open(std::string_view name, const nlohmann::json& message,
                                          int socket, Sequel& sequel) {
  if (name == "stats") {
    auto reply = info();
    const auto histograms = message.find("histograms");
    reply["stats"] =
        to_json(gather_stats(handler_), histograms != message.end() && *histograms == true);
    return reply;
  }
  if (name == "file") {
    auto file = handle_file(handler_, description_, message);
    if (!file) return error_reply(file.error());
    auto reply = info();
    reply["file"] = std::move(*file);
    return reply;
  }
  if (name == "scrub") return handle_scrub(message);
  if (name == "trim") {
    const auto trimmed = handler_.trim();
    if (!trimmed) return error_reply(trimmed.error());
    auto reply = info();
    reply["trim"] = to_json(*trimmed);
    return reply;
  }
  if (name == "backup") {
    auto snapshot = handler_.begin_backup();
    if (!snapshot) return error_reply(snapshot.error());
    auto reply = info();
    reply["backup"] = {{"current", snapshot->current}, {"file_count", snapshot->files.size()}};
    sequel.backup = std::move(*snapshot);
    return reply;
  }
  if (name == "replace_keyring") {
    if (const auto done = replace_keyring(socket); !done) return error_reply(done.error());
    return info();
  }
  auto seals = name == "rotate" ? read_seals(socket, message)
                                : Result<std::vector<metadata::RecipientSeal>>();
  if (!seals) return error_reply(seals.error());
  if (auto rotated = handle_rotation(handler_.rotation(), name, message, std::move(*seals))) {
    if (!*rotated) return error_reply(rotated->error());
    auto reply = info();
    reply.update(**rotated);
    return reply;
  }
  if (name == "sync" || name == "prepare_unmount") {
    if (const auto synced = handler_.sync(); !synced) return error_reply(synced.error());
    sequel.wait_for_close = name == "prepare_unmount";
    return info();
  }
  return error_reply({ErrorCode::unsupported, fmt::format("unknown command '{}'", name)});
}

nlohmann::json ControlServer::handle_lock() {
  const auto locked = handler_.lock();
  if (!locked) return error_reply(locked.error());
  auto reply = info();
  reply["was_open"] = *locked;
  return reply;
}

nlohmann::json ControlServer::handle_unlock(int socket, const nlohmann::json& message) {
  const auto size = message.find("key_size_bytes");
  if (size == message.end() || !size->is_number_unsigned() ||
      *size != metadata::volume_key_size_bytes) {
    return error_reply({ErrorCode::invalid_argument, "the request has no key of a volume's size"});
  }
  SecretBytes key(metadata::volume_key_size_bytes);
  if (const auto read = read_bytes(socket, key.mutable_view(), request_timeout); !read) {
    return error_reply(read.error());
  }
  const auto unlocked = handler_.unlock(key.view());
  if (!unlocked) return error_reply(unlocked.error());
  auto reply = info();
  reply["was_locked"] = *unlocked;
  return reply;
}

Result<> ControlServer::replace_keyring(int socket) {
  if (!keyring_mutex_.try_lock()) {
    return fail(ErrorCode::busy, "another change of the keyring is under way; try again");
  }
  const LockGuard lock(keyring_mutex_, std::adopt_lock);
  NACRE_ASSIGN(const auto line, read_line(socket, keyring_line_size_bytes_max, request_timeout));
  NACRE_ASSIGN(const auto message, parse_message(line));
  const auto keyring = message.find("keyring");
  if (keyring == message.end() || !keyring->is_string()) {
    return fail(ErrorCode::invalid_argument, "the second line holds no keyring");
  }
  return handler_.replace_recipients(keyring->get_ref<const std::string&>());
}

Result<std::vector<metadata::RecipientSeal>> ControlServer::read_seals(
    int socket, const nlohmann::json& message) {
  NACRE_ASSIGN(const std::size_t size, seals_size_bytes(message));
  SecretBytes bytes(size);
  NACRE_TRY(read_bytes(socket, bytes.mutable_view(), request_timeout));
  return decode_seals(bytes.view());
}

nlohmann::json ControlServer::handle_log(const nlohmann::json& message) {
  std::uint64_t number = 0;
  if (const auto after = message.find("after"); after != message.end()) {
    if (!after->is_number_unsigned()) {
      return error_reply({ErrorCode::invalid_argument, "after is no number of a message"});
    }
    number = after->get<std::uint64_t>();
  }
  const auto messages = handler_.messages_after(number);
  if (!messages) return error_reply(messages.error());
  auto reply = info();
  auto& lines = reply["log"] = nlohmann::json::array();
  for (const LogMessage& one : *messages) {
    lines.push_back({{"number", one.number},
                     {"time_ms", one.time_ms},
                     {"level", one.level},
                     {"text", one.text}});
  }
  return reply;
}

nlohmann::json ControlServer::handle_scrub(const nlohmann::json& message) {
  const auto action = message.find("action");
  const auto command = action != message.end() && action->is_string()
                           ? scrub_command_of(action->get_ref<const std::string&>())
                           : std::nullopt;
  if (!command) {
    return error_reply({ErrorCode::invalid_argument,
                        "the request names no action: begin, pause, resume, stop or status"});
  }
  std::optional<std::uint64_t> rate;
  if (const auto asked = message.find("rate_bytes_per_second"); asked != message.end()) {
    if (!asked->is_number_unsigned()) {
      return error_reply({ErrorCode::invalid_argument, "rate_bytes_per_second is no number"});
    }
    rate = asked->get<std::uint64_t>();
  }
  const auto scrub = handler_.scrub(*command, rate);
  if (!scrub) return error_reply(scrub.error());
  auto reply = info();
  reply["scrub"] = to_json(*scrub);
  return reply;
}

nlohmann::json ControlServer::info() {
  nlohmann::json info = {{"ok", true},
                         {"version", NACRE_VERSION},
                         {"pid", ::getpid()},
                         {"volume_id", description_.volume_id},
                         {"label", description_.label},
                         {"read_only", description_.read_only},
                         {"locked", handler_.is_locked()},
                         {"keyring_generation", handler_.keyring_generation()}};
  metadata::put_bytes(info, "volume", description_.volume_directory);
  metadata::put_bytes(info, "mountpoint", description_.mountpoint);
  return info;
}

void ControlServer::reap(bool everything) {
  std::list<Connection> finished;
  {
    const LockGuard lock(mutex_);
    for (auto at = connections_.begin(); at != connections_.end();) {
      const auto next = std::next(at);
      if (everything || at->finished) finished.splice(finished.end(), connections_, at);
      at = next;
    }
  }
  for (auto& connection : finished) {
    if (connection.thread.joinable()) connection.thread.join();
  }
}

}  // namespace nacre::fs
