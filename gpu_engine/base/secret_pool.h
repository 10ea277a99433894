// SPDX-License-Identifier: Apache-2.0
// Memory for secrets. Small secrets share pages: a volume has many 32-byte keys, and a locked page
// for each would soon reach RLIMIT_MEMLOCK (8 MiB on Debian, less elsewhere).
//
// One region of address space is reserved at first use and left out of core dumps. It is cut into
// slabs, each of which is locked when it is first used. A slab holds blocks of one power-of-two
// size, and is free again when its last block is freed. Locking is tried, not required. A secret
// that is too large for a slab, or that is allocated when the region is full, gets pages of its
// own, locked where the limit allows and left out of core dumps as well.
#pragma once

#include <cstddef>

#include "gpu_engine/base/bytes.h"

namespace nacre {

inline constexpr std::size_t secret_pool_size_bytes = 4u << 20;
inline constexpr std::size_t secret_slab_size_bytes = 16u << 10;
inline constexpr std::size_t secret_block_size_bytes_min = 64;  // also every block's alignment
inline constexpr std::size_t secret_block_size_bytes_max = 4u << 10;

struct SecretPoolStats {
  std::size_t used_slab_count;
  std::size_t locked_slab_count;
};

// Zeroed memory of at least size bytes (size > 0), aligned to secret_block_size_bytes_min.
// Thread-safe. Throws std::bad_alloc. A child of fork() locks the memory anew.
Byte* allocate_secret(std::size_t size);

// Wipes and frees; size as given to allocate_secret().
void free_secret(Byte* data, std::size_t size);

SecretPoolStats secret_pool_stats();

}  // namespace nacre
