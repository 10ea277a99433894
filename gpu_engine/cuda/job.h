// SPDX-License-Identifier: Apache-2.0
// A payload that the slots' threads are running. It has parts, and one thread runs each part.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cuda/batch.h"

namespace nacre::engine::cuda {

struct Job {
  explicit Job(Payload& of);

  // A sorted payload has batches, another one stretches.
  std::size_t part_count() const { return batches.size() + stretches.size(); }
  bool has_parts_left() const { return next_part < part_count(); }
  // Calls counted(), or done() if that is not set.
  void say_ended() const;

  Payload& payload;
  std::function<void()> done;
  std::function<void(const MessageCounts&)> counted;  // for stretches, called in place of done()
  bool input_pinned = false;
  bool output_pinned = false;
  std::vector<Batch> batches;
  std::vector<Stretch> stretches;
  std::vector<std::uint32_t> for_cpu;  // messages that no device takes; they run after all parts
  // Guarded by the mutex of the backend that deals parts out.
  std::size_t next_part = 0;
  unsigned running = 0;
  MessageCounts counts;  // of stretches
};

// Counts the messages of a stretch, all of which must have results.
MessageCounts count_messages(const Payload& payload, const Stretch& stretch);
// Runs a stretch on a backend that runs any message. Allocates no memory.
void run_on(Backend& backend, Payload& payload, const Stretch& stretch);
// Runs all messages of the payload.
MessageCounts run_on(Backend& backend, Payload& payload);

}  // namespace nacre::engine::cuda
