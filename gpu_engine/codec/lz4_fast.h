// SPDX-License-Identifier: Apache-2.0
// A fast encoder of LZ4 blocks (lz4/doc/lz4_Block_format.md) of at most 64 KiB.
#pragma once

#include <cstddef>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// The last level of codec lz77 that uses this encoder; levels above it use liblz4's LZ4HC.
inline constexpr int lz4_fast_level_max = 4;

// Returns the block's size, or 0 when the block does not fit into out. plain: 1 … 65536 bytes.
// acceleration: 1 … 8, how eagerly the encoder skips ahead where it finds no match. Thread-safe:
// tables are per thread. May throw std::bad_alloc.
std::size_t encode_lz4_fast(int acceleration, ByteView plain, MutableByteView out);

}  // namespace nacre::engine
