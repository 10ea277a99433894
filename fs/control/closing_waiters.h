// SPDX-License-Identifier: Apache-2.0
// The connections of clients that prepared to unmount, which are told how the volume was closed. A
// client that hangs up before, because the mount was in use, leaves nothing behind.
#pragma once

#include <poll.h>

#include <chrono>
#include <string_view>
#include <vector>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

inline constexpr std::size_t closing_waiter_count_max = 8;

// Thread-safe.
class ClosingWaiters {
 public:
  ClosingWaiters() = default;
  ClosingWaiters(const ClosingWaiters&) = delete;
  ClosingWaiters& operator=(const ClosingWaiters&) = delete;
  ~ClosingWaiters();

  // Takes the socket, and closes it if there are too many.
  void add(int socket);
  // Adds entries for poll(2), which it wakes when a client has hung up.
  void append_to(std::vector<pollfd>& entries);
  void drop_those_gone();
  // Sends the line to all, and closes their sockets.
  void tell(std::string_view line, std::chrono::milliseconds timeout);

 private:
  Mutex mutex_;
  std::vector<int> sockets_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
