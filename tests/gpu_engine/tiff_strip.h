// SPDX-License-Identifier: Apache-2.0
// One strip of a TIFF image in memory, coded and decoded by libtiff: the judge of rle and lzw.
#pragma once

#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

enum class TiffScheme : std::uint16_t { lzw = 5, packbits = 32773 };

// The strip that libtiff makes of plain (an image of one row, 8 bits a sample).
Bytes encode_tiff_strip(TiffScheme scheme, ByteView plain);
// What libtiff reads from a file whose only strip is coded; empty when libtiff reports an error.
Bytes decode_tiff_strip(TiffScheme scheme, ByteView coded, std::size_t plain_size);

}  // namespace nacre::engine
