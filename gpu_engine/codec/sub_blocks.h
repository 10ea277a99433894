// SPDX-License-Identifier: Apache-2.0
// The outer framing of every codec stream but none and zstd: the plain bytes are cut into
// sub-blocks of sub_block_size_bytes (the last one may be shorter) and the stream is the sub-blocks
// one after the other, each
//
//   0        4
//   +--------+------------------+
//   | word   | stored bytes     |      word, u32 little-endian: bit 31 = stored as they are,
//   +--------+------------------+      bits 0…30 = count of stored bytes
//
// - A sub-block stored as it is has exactly its plain size; a coded one has at least one byte and
//   fewer than its plain size. So no sub-block takes more than 4 bytes above its plain size.
// - A coded sub-block refers to nothing before its own first byte: sub-blocks can be decoded in any
//   order and in parallel. Plain sizes are not stored: they follow from the size of the message.
// - The stream of no bytes is empty.
#pragma once

#include <cstddef>
#include <optional>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Codes one sub-block (1 … sub_block_size_bytes bytes) into out, which may be of any size. Returns
// the size of the code, or 0 when it does not fit. A code that is not smaller than plain is not
// used, so an encoder may return 0 instead. An encoder that throws std::bad_alloc is treated as
// one that returned 0.
using EncodeSubBlock = std::size_t (*)(int level, ByteView plain, MutableByteView out);
// False when coded is not exactly the code of plain.size() bytes. May throw std::bad_alloc.
using DecodeSubBlock = bool (*)(ByteView coded, MutableByteView plain);

// These have the contracts of CodecParts (codec_parts.h).
std::size_t sub_blocks_size_bound(std::size_t plain_size);
std::optional<std::size_t> encode_sub_blocks(EncodeSubBlock encode, int level, ByteView plain,
                                             MutableByteView out, std::size_t size_max);
bool decode_sub_blocks(DecodeSubBlock decode, ByteView stream, MutableByteView plain);

}  // namespace nacre::engine
