// SPDX-License-Identifier: Apache-2.0
#include "tools/web/peer_user.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/format.h>

namespace nacre::tools::web {

namespace {

// /proc/net/tcp prints an address as 32-bit words in the byte order of the machine.
std::string address_words(const void* bytes, std::size_t word_count) {
  std::string text;
  for (std::size_t i = 0; i < word_count; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const char*>(bytes) + i * sizeof word, sizeof word);
    text += fmt::format("{:08X}", word);
  }
  return text;
}

struct EndNames {
  std::string in_tcp;  // empty for IPv6
  std::string in_tcp6;
};

EndNames end_names(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in end{};
    std::memcpy(&end, &address, sizeof end);
    const std::string port = fmt::format(":{:04X}", ntohs(end.sin_port));
    const std::string words = address_words(&end.sin_addr, 1);
    // A socket of the family AF_INET6 that talks IPv4 stands in tcp6, with a mapped address.
    in6_addr mapped{};
    mapped.s6_addr[10] = mapped.s6_addr[11] = 0xff;
    std::memcpy(&mapped.s6_addr[12], &end.sin_addr, sizeof end.sin_addr);
    return {.in_tcp = words + port, .in_tcp6 = address_words(&mapped, 4) + port};
  }
  sockaddr_in6 end{};
  std::memcpy(&end, &address, sizeof end);
  return {
      .in_tcp = {},
      .in_tcp6 = address_words(&end.sin6_addr, 4) + fmt::format(":{:04X}", ntohs(end.sin6_port))};
}

std::string read_table(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::optional<uid_t> find_socket_owner(std::string_view table, std::string_view local,
                                       std::string_view remote) {
  while (!table.empty()) {
    const auto end = table.find('\n');
    const std::string_view line = table.substr(0, end);
    table.remove_prefix(end == std::string_view::npos ? table.size() : end + 1);
    if (line.find(local) == std::string_view::npos) continue;
    std::istringstream words{std::string(line)};
    std::string number, from, to, state, queues, timer, retransmits, user;
    words >> number >> from >> to >> state >> queues >> timer >> retransmits >> user;
    // The inode is 0 once the owner has closed the socket; the line then says user 0.
    std::string timeout, inode;
    words >> timeout >> inode;
    if (from != local || to != remote || inode.empty() || inode == "0") continue;
    uid_t owner = 0;
    const auto parsed = std::from_chars(user.data(), user.data() + user.size(), owner);
    if (parsed.ec == std::errc() && parsed.ptr == user.data() + user.size()) return owner;
  }
  return std::nullopt;
}

std::optional<uid_t> peer_user(int socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) != 0) return {};
  if (own.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t size = sizeof credentials;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
    return credentials.uid;
  }
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return {};
  const EndNames here = end_names(own), there = end_names(peer);
  if (!there.in_tcp.empty()) {
    const auto found = find_socket_owner(read_table("/proc/net/tcp"), there.in_tcp, here.in_tcp);
    if (found) return found;
  }
  return find_socket_owner(read_table("/proc/net/tcp6"), there.in_tcp6, here.in_tcp6);
}

}  // namespace nacre::tools::web
