// SPDX-License-Identifier: Apache-2.0
// A fast encoder of LZ4 blocks (lz4/doc/lz4_Block_format.md) of at most 64 KiB.
#pragma once

#include <cstddef>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Levels of lz77 up to this one are coded by this encoder; more thorough ones by liblz4's LZ4HC.
inline constexpr int lz4_fast_level_max = 4;

// Returns the block's size, or 0 when it does not fit into out. plain: 1 … 65536 bytes.
// acceleration: 1 … 8, how eagerly the encoder skips ahead where it finds nothing. May throw
// std::bad_alloc.
std::size_t encode_lz4_fast(int acceleration, ByteView plain, MutableByteView out);

}  // namespace nacre::engine
