// SPDX-License-Identifier: Apache-2.0
#include "fs/control/metrics_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace nacre::fs {

namespace {

constexpr std::string_view unix_prefix = "unix:";
constexpr int backlog = 16;

tl::unexpected<Error> bad_address(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("metrics={}: {}. Give a port of this machine's loopback "
                          "(127.0.0.1:9101, [::1]:9101) or a socket (unix:/PATH)",
                          text, why));
}

bool is_loopback(const in6_addr& address) {
  return IN6_IS_ADDR_LOOPBACK(&address);
}
bool is_loopback(const in_addr& address) {
  return (ntohl(address.s_addr) >> 24) == 127;
}

Error system_error(const std::string& what) {
  const auto code = errno == EACCES || errno == EPERM ? ErrorCode::permission
                    : errno == EADDRINUSE             ? ErrorCode::busy
                                                      : ErrorCode::io;
  return {code, fmt::format("{}: {}", what, std::strerror(errno))};
}

bool somebody_listens(const sockaddr_un& address) {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return true;
  const bool answered =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno != ECONNREFUSED;
  ::close(probe);
  return answered;
}

}  // namespace

Result<MetricsAddress> parse_metrics_address(std::string_view text) {
  MetricsAddress address;
  if (text.starts_with(unix_prefix)) {
    address.unix_path = text.substr(unix_prefix.size());
    if (!address.unix_path.starts_with('/')) return bad_address(text, "the path is not absolute");
    if (address.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
      return bad_address(text, "the path is too long for a socket");
    }
    return address;
  }
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text, "there is no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return bad_address(text, "the port is no number from 0 to 65535");
  }
  bool loopback = false;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    address.host = host.substr(1, host.size() - 2);
    address.is_ipv6 = true;
    in6_addr number{};
    if (::inet_pton(AF_INET6, address.host.c_str(), &number) != 1) {
      return bad_address(text, "this is no address of IPv6");
    }
    loopback = is_loopback(number);
  } else {
    address.host = host;
    in_addr number{};
    if (::inet_pton(AF_INET, address.host.c_str(), &number) != 1) {
      return bad_address(text, "this is no address");
    }
    loopback = is_loopback(number);
  }
  if (!loopback) return bad_address(text, "other machines could reach this address");
  return address;
}

Result<MetricsListener> MetricsListener::open(const MetricsAddress& address) {
  MetricsListener listener;
  if (address.unix_path.empty()) {
    NACRE_TRY(listener.bind_port(address));
  } else {
    NACRE_TRY(listener.bind_unix(address.unix_path));
  }
  if (::listen(listener.socket_, backlog) != 0) {
    return tl::unexpected(system_error(listener.description_));
  }
  return listener;
}

MetricsListener::MetricsListener(MetricsListener&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      unix_path_(std::exchange(other.unix_path_, {})),
      description_(std::move(other.description_)) {}

MetricsListener::~MetricsListener() {
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  if (socket_ >= 0) ::close(socket_);
}

Result<> MetricsListener::bind_unix(const std::string& path) {
  description_ = path;
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return tl::unexpected(system_error(path));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode) || found.st_uid != ::geteuid() || somebody_listens(address)) {
      return fail(ErrorCode::busy,
                  fmt::format("metrics=unix:{}: {}", path,
                              S_ISSOCK(found.st_mode) ? "this socket belongs to another user"
                                                      : "a file of that name is there"));
    }
    ::unlink(path.c_str());
  }
  if (::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return tl::unexpected(system_error(fmt::format("metrics=unix:{}", path)));
  }
  unix_path_ = path;
  // This comes before listen(), so no client can have connected.
  if (::chmod(path.c_str(), 0600) != 0) return tl::unexpected(system_error(path));
  return {};
}

Result<> MetricsListener::bind_port(const MetricsAddress& wanted) {
  const std::string host = wanted.is_ipv6 ? fmt::format("[{}]", wanted.host) : wanted.host;
  description_ = fmt::format("metrics={}:{}", host, wanted.port);
  sockaddr_in6 six{};
  sockaddr_in four{};
  sockaddr* address = nullptr;
  socklen_t size = 0;
  if (wanted.is_ipv6) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(wanted.port);
    ::inet_pton(AF_INET6, wanted.host.c_str(), &six.sin6_addr);
    address = reinterpret_cast<sockaddr*>(&six);
    size = sizeof six;
  } else {
    four.sin_family = AF_INET;
    four.sin_port = htons(wanted.port);
    ::inet_pton(AF_INET, wanted.host.c_str(), &four.sin_addr);
    address = reinterpret_cast<sockaddr*>(&four);
    size = sizeof four;
  }
  socket_ = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return tl::unexpected(system_error(description_));
  // The port may be that of a mount that has just ended.
  const int yes = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (::bind(socket_, address, size) != 0 || ::getsockname(socket_, address, &size) != 0) {
    return tl::unexpected(system_error(description_));
  }
  const auto port = ntohs(wanted.is_ipv6 ? six.sin6_port : four.sin_port);
  description_ = fmt::format("http://{}:{}/metrics", host, port);
  return {};
}

}  // namespace nacre::fs
