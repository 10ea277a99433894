// SPDX-License-Identifier: Apache-2.0
// Cuts a payload's messages into batches. The messages of a batch are of one kind, so that one
// launch can process all of them, and fit into a slot together. Their sizes, keys and key lengths
// may differ. Needs no CUDA. Functions are thread-safe and may throw std::bad_alloc.
#pragma once

#include <vector>

#include "gpu_engine/plan/message_kind.h"

namespace nacre::engine::cuda {

struct Batch {
  BatchKind kind;
  std::vector<std::uint32_t> indexes;  // into Payload::messages
};

// Consecutive messages of Payload::messages, not sorted yet.
struct Stretch {
  std::uint32_t first;
  std::uint32_t count;
};

// Cuts all messages of a payload into stretches for slot_count slots to share. size_bytes: the size
// of a message.
std::vector<Stretch> cut_into_stretches(std::size_t message_count, std::uint64_t size_bytes,
                                        std::size_t slot_count);
// Makes batches of a stretch's groups: as few as possible.
std::vector<Batch> fill_batches(const Payload& payload, std::vector<KindGroup> groups);

// Makes batches of sorted groups, for slot_count slots to share. Batches of serial modes come
// first, with the longest messages ahead, so that the time does not depend on the order of the
// messages.
std::vector<Batch> cut_into_batches(const Payload& payload, const std::vector<KindGroup>& groups,
                                    std::size_t slot_count);

}  // namespace nacre::engine::cuda
