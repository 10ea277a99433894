// SPDX-License-Identifier: Apache-2.0
// The functions that each codec of the registry in codec.cpp implements. The registry checks sizes
// and levels: plain is 1 … message_size_bytes_max bytes, level 0 … 9, and out may be of any size.
#pragma once

#include <cstddef>
#include <optional>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

struct CodecParts {
  std::size_t (*stream_size_bound)(std::size_t plain_size);
  // Returns the size of the stream; nothing when it does not fit into out, when it is longer than
  // size_max, or when there is no memory for the codec's tables.
  std::optional<std::size_t> (*compress)(int level, ByteView plain, MutableByteView out,
                                         std::size_t size_max);
  // False when the stream is not one stream of exactly plain.size() bytes. May throw
  // std::bad_alloc.
  bool (*decompress)(ByteView stream, MutableByteView plain);
};

extern const CodecParts none_codec;
extern const CodecParts lz77_codec;
extern const CodecParts zstd_codec;
extern const CodecParts rle_codec;
extern const CodecParts lzw_codec;
extern const CodecParts gdeflate_codec;
extern const CodecParts huffman_codec;

}  // namespace nacre::engine
