// SPDX-License-Identifier: Apache-2.0
// The bytes on which costs are measured.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Fills bytes with stretches of words, of rows of a table and of fields of numbers, so that every
// 16 KiB hold some of each. A codec compresses them about as well as files (lz77 2.7 times,
// gdeflate 3.6, huffman 1.7, lzw 2.3, rle a little) and about as fast. The bytes are always the
// same.
void fill_cost_sample(MutableByteView bytes);

}  // namespace nacre::engine
