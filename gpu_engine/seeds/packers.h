// SPDX-License-Identifier: Apache-2.0
// The four packers of the project report of Guan and Li, serial and plain, each with a stream
// format of its own: the report's CPU columns. Where the report leaves a size open, the comment
// says which size is used. The packers accept any bytes, of any length below 2^32. Decoders only
// get streams that these encoders made, and are bounds-checked all the same.
#pragma once

#include <optional>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::seeds {

// The most bytes that any of the encoders writes for plain_size bytes.
constexpr std::size_t packed_size_bound(std::size_t plain_size) {
  return 8 * plain_size + 4096;
}

// Encoders return the stream's size (out has packed_size_bound() bytes). Decoders fill out, or
// return false when the stream does not give exactly that many bytes.

// Runs of more than two equal bytes, and stretches of other bytes: an indicator bit and 7 bits of
// length, then the byte or the stretch.
std::size_t pack_rle(ByteView plain, MutableByteView out);
bool unpack_rle(ByteView stream, MutableByteView out);

// Triples (offset, length, next byte): offset within a window of 4,096 bytes (12 bits), length by
// Elias' gamma code, byte. Candidates are all places in the window that begin with the same two
// bytes.
std::size_t pack_lz77(ByteView plain, MutableByteView out);
bool unpack_lz77(ByteView stream, MutableByteView out);

// One Huffman code for the whole input, made by joining the two rarest nodes again and again. The
// stream begins with the lengths of the 256 codes, a byte each.
std::size_t pack_huffman(ByteView plain, MutableByteView out);
bool unpack_huffman(ByteView stream, MutableByteView out);

// A dictionary of 65,536 prefixes, with codes of 16 bits. A full one stays as it is.
std::size_t pack_lzw(ByteView plain, MutableByteView out);
bool unpack_lzw(ByteView stream, MutableByteView out);

}  // namespace nacre::engine::seeds
