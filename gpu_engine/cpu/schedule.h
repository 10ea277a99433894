// SPDX-License-Identifier: Apache-2.0
// Decides in which order, and in what pieces, the messages of a payload run.
//
// Nothing here changes a result or the order of Payload::results. A task is a piece of work that
// one thread runs to its end. Tasks run in the order of their cost, the longest first, so that no
// thread is left with a long task at the end (Graham 1969: at most 4/3 of the best order's time).
//   * Long messages that can be processed in parts are split.
//   * Serial messages of block ciphers share the lanes of one thread.
//   * All other messages run one by one; cheap ones are joined into tasks of some 65 us.
//
// With MessageOrder::as_given tasks keep the order of the messages. Such a task has only
// neighbouring and whole messages: a late part could end after the message that follows it.
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
  unsigned worker_count = 1;  // how many threads should run the tasks
};

// A rough estimate of a message's time on one thread. The order and the size of tasks, and the
// number of threads, depend on it.
std::uint64_t estimate_cost_ns(const Payload& payload, const Message& message);

// Schedules the messages that indexes names. worker_count_max: at least 1. Throws std::bad_alloc.
Schedule make_schedule(const Payload& payload, MessageIndexes indexes, const ExpandedKeys& keys,
                       unsigned worker_count_max);

}  // namespace nacre::engine
