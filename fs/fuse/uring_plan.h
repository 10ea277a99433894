// SPDX-License-Identifier: Apache-2.0
// Decides by which way requests shall come, and how much memory the rings may take, before anything
// is set up. The kernel has a queue for each possible CPU, and sends every request to the queue of
// the CPU that asks. All queues must be served.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

enum class UringMode { automatic, on, off };

// The machine's properties that matter for the rings.
struct UringMachine {
  // The content of /sys/module/fuse/parameters/enable_uring, or none if the file does not exist.
  std::optional<bool> enabled;
  unsigned possible_cpu_count = 1;
  unsigned online_cpu_count = 1;
  // The CPUs that this thread may run on.
  std::vector<unsigned> own_cpus;

  static UringMachine current();
};

// The maximum size of all payload buffers together.
inline constexpr std::size_t uring_payload_bytes_max = 64u << 20;

struct UringPlan {
  unsigned queue_count = 0;  // one for each possible CPU
  // Each of these CPUs has threads of its own, which stay on it.
  std::vector<unsigned> own_cpus;
  unsigned threads_per_cpu = 0;            // each thread has one entry: a place for one request
  unsigned entries_per_foreign_queue = 0;  // for queues of CPUs that this process may not run on
  std::size_t payload_size_bytes = 0;      // the size for each entry
};

// Error: unsupported, with the reason, if /dev/fuse is to serve.
Result<UringPlan> plan_uring(const UringMachine& machine, UringMode mode);

// For UringMode::on, before the mount: switches FUSE over io_uring on for the machine if it is off.
// Errors: unsupported if the kernel does not have it, permission if this process may not switch it
// on.
Result<> enable_uring();

}  // namespace nacre::fs
