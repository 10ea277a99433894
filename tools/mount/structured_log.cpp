// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/structured_log.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <nlohmann/json.hpp>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/printable.h"
#include "metadata/text/exact_bytes.h"

namespace nacre::tools {

namespace {

constexpr std::string_view journal_path = "/run/systemd/journal/socket";

int priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
      return LOG_CRIT;
    case spdlog::level::err:
      return LOG_ERR;
    case spdlog::level::warn:
      return LOG_WARNING;
    case spdlog::level::info:
      return LOG_INFO;
    default:
      return LOG_DEBUG;
  }
}

std::string_view text_of(const spdlog::string_view_t& text) {
  return {text.data(), text.size()};
}

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  JournalSink(int socket, const std::string& program, const std::string& volume) : socket_(socket) {
    append_journal_field(head_, "SYSLOG_IDENTIFIER", program);
    append_journal_field(head_, "SYSLOG_FACILITY", fmt::format("{}", LOG_DAEMON >> 3));
    append_journal_field(head_, "NACRE_VOLUME", volume);
  }
  ~JournalSink() override { ::close(socket_); }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string datagram = head_;
    append_journal_field(datagram, "PRIORITY", fmt::format("{}", priority_of(message.level)));
    append_journal_field(datagram, "MESSAGE", text_of(message.payload));
    static_cast<void>(!::send(socket_, datagram.data(), datagram.size(), MSG_NOSIGNAL));
  }
  void flush_() override {}

 private:
  const int socket_;
  std::string head_;
};

class JsonSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  JsonSink(const std::string& path, std::string program, const std::string& volume)
      : file_(path, std::ios::app), program_(std::move(program)) {
    nlohmann::json fields = nlohmann::json::object();
    metadata::put_bytes(fields, "volume", volume);
    volume_ = fields;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto since = message.time.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds).count();
    const std::time_t time = seconds.count();
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    const auto level = spdlog::level::to_string_view(message.level);
    nlohmann::ordered_json line = {
        {"time", fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                             parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                             parts.tm_sec, milliseconds)},
        {"level", text_of(level)},
        {"pid", ::getpid()},
        {"program", program_}};
    line.update(volume_);
    line["message"] = text_of(message.payload);
    file_ << printable_json(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
          << '\n';
  }
  void flush_() override { file_.flush(); }

 private:
  std::ofstream file_;
  const std::string program_;
  nlohmann::ordered_json volume_;
};

}  // namespace

void append_journal_field(std::string& datagram, std::string_view name, std::string_view value) {
  datagram += name;
  if (value.find('\n') == std::string_view::npos) {
    datagram += '=';
  } else {
    Byte size[8];
    store_le(size, std::uint64_t{value.size()});
    datagram += '\n';
    datagram.append(reinterpret_cast<const char*>(size), sizeof size);
  }
  datagram += value;
  datagram += '\n';
}

Result<std::shared_ptr<spdlog::sinks::sink>> make_journal_sink(const std::string& program,
                                                               const std::string& volume) {
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return fail(ErrorCode::io, fmt::format("no socket: {}", std::strerror(errno)));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  journal_path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    ::close(socket);
    return fail(ErrorCode::not_found,
                fmt::format("log=journal: no journal listens at {}: {}. Use log=syslog or "
                            "log-file=FILE",
                            journal_path, std::strerror(error)));
  }
  return std::make_shared<JournalSink>(socket, program, volume);
}

std::shared_ptr<spdlog::sinks::sink> make_json_sink(const std::string& path,
                                                    const std::string& program,
                                                    const std::string& volume) {
  return std::make_shared<JsonSink>(path, program, volume);
}

}  // namespace nacre::tools
