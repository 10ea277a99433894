// SPDX-License-Identifier: Apache-2.0
// Requests through /dev/fuse. Each thread reads into its own buffer and handles what it read. The
// buffer is placed so that the data of a WRITE begins on a page.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "fs/fuse/transport.h"

namespace nacre::fs {

// The number of threads if the user names none: twice the cores, but 4 to 16.
unsigned default_thread_count();

class DeviceTransport final : public Transport {
 public:
  // fd is an open and mounted /dev/fuse; the caller closes it after join(). ended is called once,
  // on one of the threads, when the connection is gone.
  DeviceTransport(int fd, unsigned thread_count, std::function<void()> ended);
  ~DeviceTransport() override;

  Result<> start(RequestHandler& handler) override;
  ssize_t send(const iovec* parts, int count) noexcept override;
  void join() override;
  void stop() override;
  std::string name() const override { return "/dev/fuse"; }

 private:
  void serve(RequestHandler& handler, MutableByteView buffer) noexcept;

  const int fd_;
  const unsigned thread_count_;
  std::function<void()> ended_;
  std::atomic<unsigned> running_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace nacre::fs
