// SPDX-License-Identifier: Apache-2.0
// The bytes on which costs are measured.
#pragma once

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Fills bytes with stretches of words, of rows of a table and of fields of numbers, so that every
// 16 KiB hold some of each: a codec then makes about as much of them as of files (lz77 2.7,
// gdeflate 3.6, huffman 1.7, lzw 2.3 times smaller, rle a little), in about the time. Always the
// same bytes.
void fill_cost_sample(MutableByteView bytes);

}  // namespace nacre::engine
