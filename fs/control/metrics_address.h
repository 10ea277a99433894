// SPDX-License-Identifier: Apache-2.0
// Where a mount's metrics are to be had: a port of the loopback, or a Unix socket. Whoever reaches
// it reads all counts, so nothing else can be asked for.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

struct MetricsAddress {
  std::string unix_path;   // absolute; empty: the rest counts
  std::string host;        // a literal address of the loopback, without brackets
  std::uint16_t port = 0;  // 0: one that is free
  bool is_ipv6 = false;
};

// "127.0.0.1:9101", "[::1]:9101" or "unix:/run/nacre/metrics.sock". invalid_argument with words for
// the user: anything else, also an address that other machines could reach.
Result<MetricsAddress> parse_metrics_address(std::string_view text);

// A socket that listens there; goes with its file.
class MetricsListener {
 public:
  // In the place of a socket file on which nobody listens any more; its mode is 0600. busy when
  // somebody does, or another file is there; permission, io.
  static Result<MetricsListener> open(const MetricsAddress& address);
  MetricsListener(MetricsListener&& other) noexcept;
  MetricsListener& operator=(MetricsListener&&) = delete;
  ~MetricsListener();

  int socket() const { return socket_; }
  // "http://127.0.0.1:9101/metrics" or the socket's path.
  const std::string& description() const { return description_; }

 private:
  MetricsListener() = default;
  Result<> bind_unix(const std::string& path);
  Result<> bind_port(const MetricsAddress& address);

  int socket_ = -1;
  std::string unix_path_;  // to be removed
  std::string description_;
};

}  // namespace nacre::fs
