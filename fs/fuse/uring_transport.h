// SPDX-License-Identifier: Apache-2.0
// Requests through io_uring, with threads for each CPU (uring_thread). /dev/fuse serves next to
// them for INIT, FORGET, INTERRUPT and notifications, which the kernel sends and takes only there.
// If anything about the rings is refused, /dev/fuse serves everything.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/fuse/device_transport.h"
#include "fs/fuse/uring_plan.h"
#include "fs/fuse/uring_thread.h"

namespace nacre::fs {

class UringTransport final : public Transport {
 public:
  // fd, thread_count and ended are those of DeviceTransport. If required is set, start() fails
  // where it would otherwise leave everything to /dev/fuse. system outlives the transport.
  UringTransport(int fd, unsigned thread_count, std::function<void()> ended, UringPlan plan,
                 bool required, std::shared_ptr<UringSystem> system);
  ~UringTransport() override;

  Result<> start(RequestHandler& handler) override;
  ssize_t send(const iovec* parts, int count) noexcept override;
  bool may_wait_for_requests() noexcept override;
  bool sends_at_once() const noexcept override { return !serving_; }
  void join() override;
  void stop() override;
  // A ring is bound to the thread that made it.
  bool renews_threads() const noexcept override { return !serving_ && device_.renews_threads(); }
  Result<> renew_threads() override { return device_.renew_threads(); }
  std::size_t ring_data_size_bytes() const noexcept override;
  void initialised(bool over_rings) noexcept override;
  std::string name() const override;

 private:
  void make_threads();
  Result<> start_threads(RequestHandler& handler);
  // Ends the threads of the rings.
  void give_up();

  const int fd_;
  const UringPlan plan_;
  const bool required_;
  const std::shared_ptr<UringSystem> system_;
  DeviceTransport device_;
  std::deque<UringQueue> queues_;
  UringTable table_;
  std::vector<std::unique_ptr<UringThread>> threads_;  // the first ones serve one queue each
  std::atomic<bool> ready_{false};                     // the rings are set up
  std::atomic<bool> serving_{false};                   // requests come over the rings
};

}  // namespace nacre::fs
