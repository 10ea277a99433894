// SPDX-License-Identifier: Apache-2.0
// What a backend is: one kind of hardware that runs messages of a payload. The planner owns the
// backends; whoever uses the engine sees none of this.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpu_engine/payload.h"

namespace nacre::engine {

// Which messages of a payload: indexes into Payload::messages, each once.
using MessageIndexes = std::span<const std::uint32_t>;

// What messages and their results come to.
struct MessageCounts {
  std::uint64_t failed = 0;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
};

// Thread-safe. The caller has made payload.results as long as payload.messages; they may be an
// earlier run's. The backend writes all of those of the messages that it is given and touches no
// other. Nothing here throws: what cannot be
// run, for want of memory too, has a result that says so.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  // Returns when every result is there.
  virtual void run(Payload& payload, MessageIndexes indexes) = 0;
  // Returns at once, or blocks while the queue is full (but never on an engine's own thread).
  // done() is called once, after the last result, on a thread of the backend; without memory for a
  // job, on the calling one.
  virtual void submit(Payload& payload, std::vector<std::uint32_t> indexes,
                      std::function<void()> done) = 0;
  // Keys that are kept from one payload to the next go, wiped.
  virtual void forget_keys() {}
};

// Whether the calling thread belongs to a backend: it must not wait for room in any queue, since
// the room may be its own to make.
bool is_engine_thread();
// For the first line of a backend's threads.
void mark_engine_thread();

}  // namespace nacre::engine
