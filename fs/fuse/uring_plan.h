// SPDX-License-Identifier: Apache-2.0
// Which way requests shall come, and how much the rings may take: decided before anything is set
// up. The kernel has a queue for each possible CPU and sends every request to the queue of the CPU
// that asks; all queues must be served.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

enum class UringMode { automatic, on, off };

// The machine as the rings see it.
struct UringMachine {
  // What /sys/module/fuse/parameters/enable_uring says; nothing where it is absent.
  std::optional<bool> enabled;
  unsigned possible_cpu_count = 1;
  unsigned online_cpu_count = 1;
  // The CPUs that this thread may run on.
  std::vector<unsigned> own_cpus;

  static UringMachine current();
};

// All payload buffers together are no larger than this.
inline constexpr std::size_t uring_payload_bytes_max = 64u << 20;

struct UringPlan {
  unsigned queue_count = 0;                // one for each possible CPU
  std::vector<unsigned> own_cpus;          // each of these has threads of its own, which stay on it
  unsigned threads_per_cpu = 0;            // each with an entry: a place for one request
  unsigned entries_per_foreign_queue = 0;  // of the CPUs that this process may not run on
  std::size_t payload_size_bytes = 0;      // of each entry
};

// unsupported with the reason when /dev/fuse is to serve.
Result<UringPlan> plan_uring(const UringMachine& machine, UringMode mode);

// For UringMode::on, before the mount: switches FUSE over io_uring on for the machine if it is
// off. unsupported when the kernel has none, permission when this process may not.
Result<> enable_uring();

}  // namespace nacre::fs
