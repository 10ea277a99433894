// SPDX-License-Identifier: Apache-2.0
#include "tools/web/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "metadata/backing/posix_error.h"

namespace nacre::tools::web {

namespace {

using metadata::FileDescriptor;

constexpr int backlog = 64;

template <typename Address>
Result<FileDescriptor> listen_at(int family, const Address& address, const std::string& where) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket) return metadata::fail_errno(errno, where);
  if (family != AF_UNIX) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), backlog) != 0) {
    if (errno == EADDRINUSE) {
      return fail(ErrorCode::busy, fmt::format("{} is in use: give another one", where));
    }
    return metadata::fail_errno(errno, where);
  }
  return socket;
}

Result<FileDescriptor> listen_at_ipv4(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return listen_at(AF_INET, address, fmt::format("port {}", port));
}

Result<FileDescriptor> listen_at_ipv6(std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return listen_at(AF_INET6, address, fmt::format("port {} of ::1", port));
}

}  // namespace

Result<Listeners> listen_on_loopback(std::uint16_t port) {
  NACRE_ASSIGN(FileDescriptor first, listen_at_ipv4(port));
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(first.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return metadata::fail_errno(errno, "the server's socket");
  }
  Listeners listeners{.sockets = {}, .port = ntohs(bound.sin_port), .hosts = {}};
  listeners.hosts.push_back(fmt::format("127.0.0.1:{}", listeners.port));
  listeners.sockets.push_back(std::move(first));
  // A machine may have no IPv6, or another program at that port of it.
  if (auto second = listen_at_ipv6(listeners.port)) {
    listeners.hosts.push_back(fmt::format("[::1]:{}", listeners.port));
    listeners.sockets.push_back(std::move(*second));
  }
  return listeners;
}

Result<Listeners> listen_on_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::name_too_long, fmt::format("{}: too long for a socket's name", path));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool is_dead =
        S_ISSOCK(status.st_mode) && probe &&
        ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED;
    if (!is_dead) return fail(ErrorCode::busy, fmt::format("{} is in use: give another one", path));
    ::unlink(path.c_str());
  }
  constexpr mode_t only_owner = 0177;
  const mode_t before = ::umask(only_owner);
  auto socket = listen_at(AF_UNIX, address, path);
  ::umask(before);
  if (!socket) return tl::unexpected(socket.error());
  Listeners listeners;
  listeners.sockets.push_back(std::move(*socket));
  if (::lstat(path.c_str(), &status) != 0) return metadata::fail_errno(errno, path);
  listeners.socket_file = {.device = status.st_dev, .inode = status.st_ino};
  return listeners;
}

void remove_socket(const std::string& path, const FileIdentity& file) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  if (status.st_dev == file.device && status.st_ino == file.inode) ::unlink(path.c_str());
}

}  // namespace nacre::tools::web
