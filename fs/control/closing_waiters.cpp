// SPDX-License-Identifier: Apache-2.0
#include "fs/control/closing_waiters.h"

#include <unistd.h>

#include "fs/control/message.h"

namespace nacre::fs {

namespace {

// A client that only ends its own writing goes on reading, and POLLHUP does not come.
bool has_hung_up(int socket) {
  pollfd entry{.fd = socket, .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

ClosingWaiters::~ClosingWaiters() {
  for (const int socket : sockets_)
    ::close(socket);
}

void ClosingWaiters::add(int socket) {
  drop_those_gone();
  const LockGuard lock(mutex_);
  if (sockets_.size() < closing_waiter_count_max) {
    sockets_.push_back(socket);
  } else {
    ::close(socket);
  }
}

void ClosingWaiters::append_to(std::vector<pollfd>& entries) {
  const LockGuard lock(mutex_);
  for (const int socket : sockets_)
    entries.push_back({.fd = socket, .events = 0, .revents = 0});
}

void ClosingWaiters::drop_those_gone() {
  const LockGuard lock(mutex_);
  std::erase_if(sockets_, [](int socket) {
    const bool gone = has_hung_up(socket);
    if (gone) ::close(socket);
    return gone;
  });
}

void ClosingWaiters::tell(std::string_view line, std::chrono::milliseconds timeout) {
  std::vector<int> sockets;
  {
    const LockGuard lock(mutex_);
    sockets.swap(sockets_);
  }
  for (const int socket : sockets) {
    static_cast<void>(write_line(socket, line, timeout));
    ::close(socket);
  }
}

}  // namespace nacre::fs
