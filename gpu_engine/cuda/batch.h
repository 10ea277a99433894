// SPDX-License-Identifier: Apache-2.0
// Cuts a payload's messages into batches. A batch has one kind of message, so that each of its
// launches does the same to all of them, and no more than a slot holds. Sizes, keys and key lengths
// mix in a batch. Free of CUDA.
#pragma once

#include <vector>

#include "gpu_engine/plan/message_kind.h"

namespace nacre::engine::cuda {

struct Batch {
  BatchKind kind;
  std::vector<std::uint32_t> indexes;  // into Payload::messages
};

// Neighbours in Payload::messages, which are not sorted yet.
struct Stretch {
  std::uint32_t first;
  std::uint32_t count;
};

// All messages of a payload, each in one stretch. Throws std::bad_alloc.
std::vector<Stretch> cut_into_stretches(std::size_t message_count, std::uint64_t size_bytes,
                                        std::size_t slot_count);
// Makes batches of a stretch's groups: as few as slots can take. Throws std::bad_alloc.
std::vector<Batch> fill_batches(const Payload& payload, std::vector<KindGroup> groups);

// Makes batches of sorted groups, for a number of slots to share. The order of a payload's messages
// should not change the time that it takes: messages of serial modes come first, the longest ahead.
// Throws std::bad_alloc.
std::vector<Batch> cut_into_batches(const Payload& payload, const std::vector<KindGroup>& groups,
                                    std::size_t slot_count);

}  // namespace nacre::engine::cuda
