// SPDX-License-Identifier: Apache-2.0
// What a backend is: one kind of hardware that runs messages of a payload. The planner owns the
// backends; callers of the engine see none of this.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpu_engine/payload.h"

namespace nacre::engine {

// Some messages of a payload, as indexes into Payload::messages. Each index occurs once.
using MessageIndexes = std::span<const std::uint32_t>;

// Counts over the messages of one run: how many failed, and the bytes of all inputs and outputs.
struct MessageCounts {
  std::uint64_t failed = 0;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
};

// Thread-safe. The caller has made payload.results as long as payload.messages; its elements may be
// an earlier run's. The backend writes the results of all messages that it is given, and no others.
// Nothing here throws. A message that cannot be run, for want of memory too, gets a result that
// says so.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // Returns when every result is there.
  virtual void run(Payload& payload, MessageIndexes indexes) = 0;
  // Returns at once, or blocks while the queue is full (but never on an engine's own thread).
  // done() is called once, after the last result, on a thread of the backend. When there is no
  // memory for a job, it is called on the calling thread.
  virtual void submit(Payload& payload, std::vector<std::uint32_t> indexes,
                      std::function<void()> done) = 0;
  // Wipes the keys that the backend keeps from one payload to the next.
  virtual void forget_keys() {}
};

// Whether the calling thread belongs to a backend. Such a thread must not wait for room in a queue,
// since making room may be its own task.
bool is_engine_thread();
// Each thread of a backend calls this first.
void mark_engine_thread();

}  // namespace nacre::engine
