// SPDX-License-Identifier: Apache-2.0
// The machine's CUDA devices: their count, what the backend keeps of each, and their slots.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/slot.h"
#include "gpu_engine/plan/busy_time.h"

namespace nacre::engine::cuda {

// Thread-safe once it is open: only the atomics and the gate change.
struct Device {
  int number = 0;
  std::string name;
  std::size_t slot_count = 0;
  std::atomic<bool> lost = false;
  std::atomic<bool> failure_said = false;
  std::atomic<bool> loss_said = false;
  BusyTime busy;
  std::atomic<std::uint64_t> input_bytes = 0;
  ScatterGate scatter_gate{ScatterGate::max()};
};

// How many devices there are: at least one. Errors: unsupported, if there is no driver or no
// device.
Result<int> count_devices();
// Also makes the device current on the calling thread. Errors: unsupported, if the device cannot
// reach the host's memory; io.
Result<std::unique_ptr<Device>> open_device(int number);
// Makes slots on the current device: slots_per_device, or fewer if its memory is small. Errors:
// out_of_memory, io.
Result<std::vector<Slot>> make_slots();

}  // namespace nacre::engine::cuda
