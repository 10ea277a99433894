// SPDX-License-Identifier: Apache-2.0
// A payload that is being run by the slots: its parts, each of which one thread runs.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cuda/batch.h"

namespace nacre::engine::cuda {

struct Job {
  explicit Job(Payload& of);

  // Batches, or stretches when nobody has sorted the payload.
  std::size_t part_count() const { return batches.size() + stretches.size(); }
  bool has_parts_left() const { return next_part < part_count(); }
  // Calls the function that the caller waits for.
  void say_ended() const;

  Payload& payload;
  std::function<void()> done;
  std::function<void(const MessageCounts&)> counted;  // called instead, for stretches
  bool input_pinned = false;
  bool output_pinned = false;
  std::vector<Batch> batches;
  std::vector<Stretch> stretches;
  std::vector<std::uint32_t> for_cpu;  // those that no device takes; they run after the parts
  // Guarded by the mutex of the backend that deals parts out.
  std::size_t next_part = 0;
  unsigned running = 0;
  MessageCounts counts;  // of stretches
};

// Counts messages that have results.
MessageCounts count_messages(const Payload& payload, const Stretch& stretch);
// Runs the messages on a backend that takes any message. Takes no memory.
void run_on(Backend& backend, Payload& payload, const Stretch& stretch);
// Runs all messages.
MessageCounts run_on(Backend& backend, Payload& payload);

}  // namespace nacre::engine::cuda
