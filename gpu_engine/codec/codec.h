// SPDX-License-Identifier: Apache-2.0
// The registry of codecs and the contract that each one keeps.
//
// A stream is a sequence of sub-blocks (see docs/FORMAT.md, "Codec streams"); every codec takes any
// byte values and any length from 0, and none of its streams is longer than stream_size_bound().
// Decoders are bounds-checked: hostile bytes give ErrorCode::corrupt.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::engine {

// Values are on-disk numbers and never change. Those not listed in codec_from_name() of this build
// are reserved for the codecs that docs/FORMAT.md names.
enum class Codec : std::uint8_t {
  none = 0,
  lz77 = 1,      // LZ4 blocks
  zstd = 2,      // zstd frames
  rle = 3,       // PackBits
  huffman = 4,   // GDeflate pages of literals alone
  gdeflate = 5,  // GDeflate pages
  lzw = 6,       // TIFF LZW
};

inline constexpr int codec_level_max = 9;

std::string_view to_string(Codec codec);
// unsupported for a reserved codec, invalid_argument for an unknown name.
Result<Codec> codec_from_name(std::string_view name);
bool codec_is_available(Codec codec);

// The most bytes that compress() can write for plain_size bytes.
std::size_t stream_size_bound(Codec codec, std::size_t plain_size);

// Writes the stream of plain into out (at least stream_size_bound() bytes) and returns its size.
// level: 0 = the codec's default, 1 fastest … 9 smallest. Thread-safe; scratch memory is per
// thread.
Result<std::size_t> compress(Codec codec, int level, ByteView plain, MutableByteView out);

// The same into an output of any size: nothing when the stream would not fit (or the arguments are
// not valid). Lets a sealer compress straight into a record that has no room for the bound.
std::optional<std::size_t> compress_to_fit(Codec codec, int level, ByteView plain,
                                           MutableByteView out);

// Decodes exactly plain.size() bytes; corrupt when the stream gives more, fewer, or is malformed.
Result<void> decompress(Codec codec, ByteView stream, MutableByteView plain);

}  // namespace nacre::engine
