// SPDX-License-Identifier: Apache-2.0
// Requests through /dev/fuse. Each thread reads into its own buffer and handles what it read. The
// buffer is placed so that the data of a WRITE begins on a page.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "fs/fuse/transport.h"
#include "gpu_engine/base/mutex.h"

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
  Result<> renew_threads() override;
  bool renews_threads() const noexcept override { return true; }
  std::string name() const override { return "/dev/fuse"; }

 private:
  struct Worker {
    std::thread thread;
    std::atomic<bool> is_retiring{false};
    std::atomic<bool> is_over{false};
  };
  using Workers = std::vector<std::unique_ptr<Worker>>;

  // Starts thread_count_ workers; fewer if there are no more threads, but at least one.
  Result<Workers> start_workers();
  void serve(const Worker& worker, MutableByteView buffer) noexcept;
  // Wakes the workers, which may wait for a request, until is_done.
  static void wake_until(const Workers& workers, const std::function<bool()>& is_done);

  const int fd_;
  const unsigned thread_count_;
  std::function<void()> ended_;
  RequestHandler* handler_ = nullptr;
  std::atomic<unsigned> running_{0};
  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  Workers workers_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
