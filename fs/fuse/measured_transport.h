// SPDX-License-Identifier: Apache-2.0
// A transport that counts the answers before they are sent.
#pragma once

#include "fs/control/request_metrics.h"
#include "fs/fuse/transport.h"

namespace nacre::fs {

class MeasuredTransport final : public Transport {
 public:
  // Both outlive it.
  MeasuredTransport(Transport& transport, RequestMetrics& metrics)
      : transport_(transport), metrics_(metrics) {}

  Result<> start(RequestHandler& handler) override { return transport_.start(handler); }
  // Counts before it sends, so a process that has an answer finds it in the counts.
  ssize_t send(const iovec* parts, int count) noexcept override;
  bool may_wait_for_requests() noexcept override { return transport_.may_wait_for_requests(); }
  bool sends_at_once() const noexcept override { return transport_.sends_at_once(); }
  void join() override { transport_.join(); }
  void stop() override { transport_.stop(); }
  Result<> renew_threads() override { return transport_.renew_threads(); }
  bool renews_threads() const noexcept override { return transport_.renews_threads(); }
  std::size_t ring_data_size_bytes() const noexcept override {
    return transport_.ring_data_size_bytes();
  }
  void initialised(bool over_rings) noexcept override { transport_.initialised(over_rings); }
  std::string name() const override { return transport_.name(); }

 private:
  Transport& transport_;
  RequestMetrics& metrics_;
};

}  // namespace nacre::fs
