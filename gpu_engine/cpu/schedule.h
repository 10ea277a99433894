// SPDX-License-Identifier: Apache-2.0
// Decides in which order, and in what pieces, the messages of a payload run.
//
// Nothing here changes a result: the caller's order is that of Payload::results. A task is what one
// thread takes at a time. Tasks run in the order of their cost, the dearest first, so that no
// thread is left with a long one at the end (Graham 1969: at most 4/3 of the best order's time).
//   * Messages that can be processed in parts, and are long, are split.
//   * Serial messages of block ciphers share the lanes of one thread.
//   * Everything else runs alone; cheap messages are joined into tasks of some 65 us.
//
// A payload whose order is as_given gets tasks in that order instead. They are made of neighbours
// and of whole messages, since a part that is late would outlast the message after it.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_engine/backend.h"
#include "gpu_engine/cpu/run_message.h"
#include "gpu_engine/payload.h"

namespace nacre::engine {

struct Task {
  enum class Kind : std::uint8_t { messages, serial_messages, part };
  Kind kind;
  std::uint32_t first;  // into Schedule::order, or into Schedule::parts
  std::uint32_t count;
  std::uint64_t cost_ns;
};

// A message in parts, which are neighbours in Schedule::parts.
struct Split {
  std::uint32_t message_index;
  std::uint32_t first_part;
  std::uint32_t part_count;
};

struct Schedule {
  std::vector<Task> tasks;
  std::vector<std::uint32_t> order;  // message indexes, each once except those in parts
  std::vector<Part> parts;
  std::vector<Split> splits;
  unsigned worker_count = 1;  // how many threads are worth waking
};

// A rough estimate of a message's time on one thread. Only the order of the tasks depends on it.
std::uint64_t estimate_cost_ns(const Payload& payload, const Message& message);

// Schedules the messages that indexes names. worker_count_max: at least 1. Throws std::bad_alloc.
Schedule make_schedule(const Payload& payload, MessageIndexes indexes, const ExpandedKeys& keys,
                       unsigned worker_count_max);

}  // namespace nacre::engine
