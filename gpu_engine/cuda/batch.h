// SPDX-License-Identifier: Apache-2.0
// Cuts a payload's messages into batches: of one kind, so that each of a batch's launches does the
// same to all of them, and no more than a slot holds. Sizes, keys and key lengths mix in a batch.
// Free of CUDA.
#pragma once

#include <vector>

#include "gpu_engine/cuda/message_kind.h"

namespace nacre::engine::cuda {

struct Batch {
  BatchKind kind;
  std::vector<std::uint32_t> indexes;  // into Payload::messages
};

// Groups as they were sorted, for so many slots to share. What a payload's order of messages makes
// of the time it takes is made good here: messages of serial modes come first, and by their length.
// Throws std::bad_alloc.
std::vector<Batch> cut_into_batches(const Payload& payload, const std::vector<KindGroup>& groups,
                                    std::size_t slot_count);

}  // namespace nacre::engine::cuda
