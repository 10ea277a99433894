// SPDX-License-Identifier: Apache-2.0
// Generations of superblock and keyring. Each update has the next generation, and the copy with the
// higher one counts.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

// The last generation is never written, and a document that names it is corrupt: nothing could
// follow it, and a counter that wraps would make the oldest document the newest.
inline constexpr std::uint64_t generation_end = ~0ull;
// Returns the generation after it; generation_end stays as it is.
constexpr std::uint64_t next_generation(std::uint64_t generation) {
  return generation == generation_end ? generation : generation + 1;
}
// Error: too_big for generation_end. what names the document in the message.
Result<void> check_generation(std::uint64_t generation, std::string_view what);

}  // namespace nacre::metadata
