// SPDX-License-Identifier: Apache-2.0
// Any bytes over the control socket. Input: a byte, then by its value what a client sends to a
// daemon; what a daemon answers a client (the second byte says to which call); or the options of a
// rotation, which a daemon of ours takes only with a volume.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/control_server.h"
#include "fs/control/message.h"
#include "fs/control/mount_table.h"
#include "fs/control/rotation_requests.h"
#include "fs/control/socket_path.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace nacre;
using namespace nacre::fs;

// The most bytes that fit into the buffer of a socket from which nothing is read yet.
constexpr std::size_t input_size_max = 60'000;
constexpr std::chrono::seconds patience{60};

void require(bool holds) {
  if (!holds) std::abort();
}

// Does nothing, and succeeds.
class IdleVolume final : public ControlHandler {
 public:
  Result<> sync() override { return {}; }
  VolumeStats stats() override { return {}; }
  Result<CompactionReport> trim() override { return CompactionReport{}; }
  Result<metadata::ScrubRow> scrub(ScrubCommand, std::optional<std::uint64_t>) override {
    return metadata::ScrubRow{};
  }
  Result<BackupSnapshot> begin_backup() override {
    return BackupSnapshot{
        .files = {{.path = "db/CURRENT", .size = 16}}, .current = {1}, .hold = {}};
  }
  std::uint64_t keyring_generation() override { return 1; }
  Result<> replace_recipients(std::string_view text) override {
    if (text.empty()) return fail(ErrorCode::corrupt, "no keyring");
    return {};
  }
};

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) break;  // who refuses may close before he has read all
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  ::shutdown(socket, SHUT_WR);
}

// Both ends in one process: a server, and a listening socket whose answers are taken from the
// input.
class Ends {
 public:
  Ends() {
    std::string pattern = "/tmp/nacre-fuzz-control.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    description_.device_major = 4000;  // no mount has this number, nor the next
    description_.device_minor = static_cast<unsigned>(::getpid());
    auto server = ControlServer::start(description_, volume_);
    require(server.has_value());
    server_ = std::move(*server);
    mount_.device_major = description_.device_major + 1;
    mount_.device_minor = description_.device_minor;
    mount_.owner = ::geteuid();
    const std::string name = fmt::format("{}-{}.sock", mount_.device_major, mount_.device_minor);
    const auto hostile = std::filesystem::path(server_->socket_path()).replace_filename(name);
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = address_of(hostile);
    require(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    require(::listen(listener_, 8) == 0);
  }
  ~Ends() {
    ::close(listener_);
    server_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // One line comes back, whatever was sent; nothing but an object is obeyed.
  void ask_server(std::string_view request) const {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = address_of(server_->socket_path());
    require(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    send_all(socket, request);
    const auto line = read_line(socket, reply_size_bytes_max, patience);
    ::close(socket);
    if (!line) {
      // The server may close while bytes that it did not read are under way.
      require(line.error().code == ErrorCode::io);
      return;
    }
    const auto reply = parse_message(*line);
    require(reply && reply->contains("ok") && (*reply)["ok"].is_boolean());
    if (!parse_message(request.substr(0, request.find('\n')))) require(!(*reply)["ok"].get<bool>());
  }

  void answer_client(Byte call, std::string_view answer) const {
    auto client = ControlClient::connect(mount_);
    require(client.has_value());
    const int socket = ::accept(listener_, nullptr, nullptr);
    require(socket >= 0);
    send_all(socket, answer);
    switch (call % 4) {
      case 0:
        if (const auto reply = client->request("info", patience)) require(reply->is_object());
        break;
      case 1:
        if (const auto snapshot = client->begin_backup()) {
          static_cast<void>(client->check_backup(std::chrono::milliseconds(0)));
        }
        break;
      case 2:
        static_cast<void>(client->replace_keyring("{}"));
        break;
      default:
        static_cast<void>(client->scrub(ScrubCommand::status, {}, patience));
    }
    ::close(socket);
  }

 private:
  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    require(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }

  std::filesystem::path folder_;
  IdleVolume volume_;
  MountDescription description_;
  MountEntry mount_;  // of the hostile one
  std::unique_ptr<ControlServer> server_;
  int listener_ = -1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const Ends ends;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2,
                              std::min(size - 2, input_size_max));
  if (data[0] % 4 < 2) {
    ends.ask_server(text);
  } else if (data[0] % 4 == 2) {
    ends.answer_client(data[1], text);
  } else if (const auto message = parse_message(text)) {
    const auto options = parse_rotation_options(*message);
    if (options) require(options->level >= 0);
    const auto seals = seals_size_bytes(*message);
    if (seals) require(*seals <= 4096);
  }
  return 0;
}
