// SPDX-License-Identifier: Apache-2.0
// What a backend on devices can do for the planner, in addition to Backend. Tests use an
// implementation without devices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/engine.h"
#include "gpu_engine/plan/message_kind.h"

namespace nacre::engine {

struct CudaOptions {
  unsigned queued_payload_max = 64;
  // Called on one of the backend's threads: once for each device when it first fails, and once when
  // it is lost.
  std::function<void(std::string_view)> warn = {};
};

struct CudaStats {
  std::uint64_t message_count = 0;       // ended well on a device
  std::uint64_t input_bytes = 0;         // of all messages of the batches that devices ran
  std::uint64_t failed_batch_count = 0;  // ended on the cpu because a device failed
  std::vector<DeviceStats> devices = {};

  // What was done after before, an earlier answer of the same backend. Failed batches count all the
  // same.
  CudaStats since(const CudaStats& before) const {
    CudaStats later = *this;
    later.message_count -= before.message_count;
    later.input_bytes -= before.input_bytes;
    for (std::size_t i = 0; i < std::min(devices.size(), before.devices.size()); ++i) {
      later.devices[i].busy_ns -= before.devices[i].busy_ns;
      later.devices[i].input_bytes -= before.devices[i].input_bytes;
    }
    return later;
  }
};

class DeviceBackend : public Backend {
 public:
  // Like submit(), for messages that have been sorted.
  virtual void submit_sorted(Payload& payload, Sorted sorted, std::function<void()> done) = 0;
  // Like run(), for messages that have been sorted.
  virtual void run_sorted(Payload& payload, Sorted sorted) {
    std::latch ended(1);
    submit_sorted(payload, std::move(sorted), [&] { ended.count_down(); });
    ended.wait();
  }
  // Like submit(), for all messages of a payload that find_alike() accepts. The messages are not
  // sorted: each thread that runs a part of them sorts the part and counts its results.
  virtual void submit_unsorted(Payload& payload,
                               std::function<void(const MessageCounts&)> done) = 0;
  // Like run(), for the same payloads.
  virtual MessageCounts run_unsorted(Payload& payload) {
    std::latch ended(1);
    MessageCounts counts;
    submit_unsorted(payload, [&](const MessageCounts& of_all) {
      counts = of_all;
      ended.count_down();
    });
    ended.wait();
    return counts;
  }

  // Page-locked memory, the caller's own, that devices read and write without a copy on the host.
  // Errors: out_of_memory.
  virtual Result<Arena> allocate(std::size_t size_bytes) = 0;
  virtual CudaStats stats() const = 0;
  // How much more work each remaining device has, since others are lost: 1 when all devices work,
  // 2 when half of them are lost, and 0 when all are.
  virtual double load_factor() const = 0;
  // For measurements: the seconds that the first device's kernels take for the payload, which is
  // one batch of one kind, with inputs and outputs in the device's memory. Fills the results.
  // Errors: unsupported for any other payload; out_of_memory, io.
  virtual Result<double> measure_resident(Payload& payload, unsigned repetitions) = 0;
  // Measures the first device.
  virtual Result<DeviceCeilings> measure_ceilings() = 0;
};

// Makes the backend on all devices. cpu must outlive it. The error's text says why there is none:
// "cuda: none (…)".
using DeviceMaker =
    std::function<Result<std::unique_ptr<DeviceBackend>>(const CudaOptions&, Backend& cpu)>;

}  // namespace nacre::engine
