// SPDX-License-Identifier: Apache-2.0
#include "fs/control/message.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gpu_engine/base/printable.h"

namespace nacre::fs {

namespace {

using Clock = std::chrono::steady_clock;

// Waits until the socket is ready for events, or the time is up (cancelled).
Result<> wait_for(int socket, short events, std::optional<Clock::time_point> deadline) {
  while (true) {
    int timeout_ms = -1;
    if (deadline) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return fail(ErrorCode::cancelled, "the other side is silent");
      timeout_ms = static_cast<int>(left);
    }
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    const int ready = ::poll(&entry, 1, timeout_ms);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail(ErrorCode::io, strerror(errno));
  }
}

std::optional<Clock::time_point> deadline_after(std::optional<std::chrono::milliseconds> timeout) {
  if (!timeout) return std::nullopt;
  return Clock::now() + *timeout;
}

}  // namespace

Result<std::string> read_line(int socket, std::size_t size_max,
                              std::optional<std::chrono::milliseconds> timeout) {
  const auto deadline = deadline_after(timeout);
  std::string line;
  char buffer[4096];
  while (true) {
    NACRE_TRY(wait_for(socket, POLLIN, deadline));
    // Bytes are looked at before they are taken, because those after the newline belong to the next
    // line.
    ssize_t got = ::recv(socket, buffer, sizeof buffer, MSG_DONTWAIT | MSG_PEEK);
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return fail(ErrorCode::io, strerror(errno));
    }
    if (got == 0) {
      if (line.empty()) return fail(ErrorCode::io, "the other side closed the connection");
      return line;
    }
    const auto end = std::string_view(buffer, static_cast<std::size_t>(got)).find('\n');
    const bool complete = end != std::string_view::npos;
    got = ::recv(socket, buffer, complete ? end + 1 : static_cast<std::size_t>(got), MSG_DONTWAIT);
    if (got < 0) return fail(ErrorCode::io, strerror(errno));
    line.append(buffer, complete ? end : static_cast<std::size_t>(got));
    if (line.size() > size_max) {
      return fail(ErrorCode::too_big, fmt::format("a message may have {} bytes", size_max));
    }
    if (complete) return line;
  }
}

Result<> write_line(int socket, std::string_view line, std::chrono::milliseconds timeout) {
  return write_bytes(socket, as_bytes(std::string(line) + '\n'), timeout);
}

Result<> read_bytes(int socket, MutableByteView bytes,
                    std::optional<std::chrono::milliseconds> timeout) {
  const auto deadline = deadline_after(timeout);
  std::size_t done = 0;
  while (done < bytes.size()) {
    NACRE_TRY(wait_for(socket, POLLIN, deadline));
    const ssize_t got = ::recv(socket, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return fail(ErrorCode::io, strerror(errno));
    if (got == 0) return fail(ErrorCode::io, "the other side closed the connection");
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<> write_bytes(int socket, ByteView bytes, std::chrono::milliseconds timeout) {
  const auto deadline = deadline_after(timeout);
  std::size_t done = 0;
  while (done < bytes.size()) {
    NACRE_TRY(wait_for(socket, POLLOUT, deadline));
    const ssize_t sent =
        ::send(socket, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return fail(ErrorCode::io, strerror(errno));
    }
    done += static_cast<std::size_t>(sent);
  }
  return {};
}

bool is_shallow(std::string_view text, int depth_max) {
  int depth = 0;
  bool is_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (is_string) {
      if (byte == '\\') ++i;
      is_string = byte != '"';
    } else if (byte == '"') {
      is_string = true;
    } else if (byte == '[' || byte == '{') {
      if (++depth > depth_max) return false;
    } else if (byte == ']' || byte == '}') {
      --depth;
    }
  }
  return true;
}

Result<nlohmann::json> parse_message(std::string_view text) {
  if (!is_shallow(text)) {
    return fail(ErrorCode::invalid_argument, "the message is nested too deeply");
  }
  auto message = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (message.is_discarded() || !message.is_object()) {
    return fail(ErrorCode::invalid_argument, "the message is not a JSON object");
  }
  return message;
}

nlohmann::json error_reply(const Error& error) {
  // A message may quote names that are not text.
  return {
      {"ok", false},
      {"error", {{"code", to_string(error.code)}, {"message", printable_lines(error.message)}}}};
}

Result<> reply_result(const nlohmann::json& reply) {
  const auto ok = reply.find("ok");
  if (ok == reply.end() || !ok->is_boolean()) {
    return fail(ErrorCode::io, "the reply does not say whether the command was done");
  }
  if (ok->get<bool>()) return {};
  std::string message = "no reason given";
  auto code = ErrorCode::io;
  if (const auto error = reply.find("error"); error != reply.end() && error->is_object()) {
    if (const auto text = error->find("message"); text != error->end() && text->is_string()) {
      message = text->get<std::string>();
    }
    if (const auto name = error->find("code"); name != error->end() && name->is_string()) {
      for (int number = 0; number <= static_cast<int>(ErrorCode::stale); ++number) {
        const auto candidate = static_cast<ErrorCode>(number);
        if (to_string(candidate) == name->get<std::string>()) code = candidate;
      }
    }
  }
  return fail(code, message);
}

}  // namespace nacre::fs
