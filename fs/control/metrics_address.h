// SPDX-License-Identifier: Apache-2.0
// The address of a mount's metrics: a port of the loopback interface, or a Unix socket. Any client
// that reaches it can read all counts, so no other kind of address is accepted.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

struct MetricsAddress {
  std::string unix_path;   // absolute; empty: host and port are used
  std::string host;        // a numeric loopback address, without brackets
  std::uint16_t port = 0;  // 0: any free port
  bool is_ipv6 = false;
};

// Parses "127.0.0.1:9101", "[::1]:9101" or "unix:/run/nacre/metrics.sock". Error: invalid_argument,
// with a message for the user, for anything else, also for an address that other machines can
// reach.
Result<MetricsAddress> parse_metrics_address(std::string_view text);

// A socket that listens at the address. The destructor closes it and removes its file.
class MetricsListener {
 public:
  // Replaces a socket file on which no process listens any more. The mode of the file is 0600.
  // Errors: busy if a process listens or another kind of file is there; permission; io.
  static Result<MetricsListener> open(const MetricsAddress& address);
  MetricsListener(MetricsListener&& other) noexcept;
  MetricsListener& operator=(MetricsListener&&) = delete;
  ~MetricsListener();

  int socket() const { return socket_; }
  // The URL "http://127.0.0.1:9101/metrics", or the socket's path.
  const std::string& description() const { return description_; }

 private:
  MetricsListener() = default;
  Result<> bind_unix(const std::string& path);
  Result<> bind_port(const MetricsAddress& address);

  int socket_ = -1;
  std::string unix_path_;  // removed by the destructor
  std::string description_;
};

}  // namespace nacre::fs
