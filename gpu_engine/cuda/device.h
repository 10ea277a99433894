// SPDX-License-Identifier: Apache-2.0
// The machine's CUDA devices: their number, what the backend must know of each, and the slots.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gpu_engine/cuda/batch_run.h"
#include "gpu_engine/cuda/slot.h"

namespace nacre::engine::cuda {

struct Device {
  int number = 0;
  std::string name;
  std::size_t slot_count = 0;
  std::atomic<bool> lost = false;
  std::atomic<bool> failure_said = false;
  std::atomic<bool> loss_said = false;
  ScatterGate scatter_gate{ScatterGate::max()};
};

// At least one. unsupported when there is no driver or no device.
Result<int> count_devices();
// Makes the device current. unsupported when it cannot reach the host's memory.
Result<std::unique_ptr<Device>> open_device(int number);
// Slots of the current device, as many as its memory allows. Errors: out_of_memory.
Result<std::vector<Slot>> make_slots();

}  // namespace nacre::engine::cuda
