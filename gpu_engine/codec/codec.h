// SPDX-License-Identifier: Apache-2.0
// The registry of codecs and the contract that each of them keeps. A stream is a sequence of
// sub-blocks (see docs/FORMAT.md, "Codec streams"). Every codec takes any byte values and any
// length from 0, and none of its streams is longer than stream_size_bound(). Decoders are
// bounds-checked: hostile bytes give ErrorCode::corrupt. When there is no memory for a codec's
// tables, std::bad_alloc is thrown, which says nothing about the stream; the next call asks for the
// memory again.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::engine {

// Values are on-disk numbers and never change.
enum class Codec : std::uint8_t {
  none = 0,
  lz77 = 1,      // LZ4 blocks
  zstd = 2,      // zstd frames
  rle = 3,       // PackBits
  huffman = 4,   // GDeflate pages of literals alone
  gdeflate = 5,  // GDeflate pages
  lzw = 6,       // TIFF LZW
  // No stream and no record has this codec: choose_codec() says which of the others it stands for.
  automatic = 255,
};

inline constexpr int codec_level_max = 9;

std::string_view to_string(Codec codec);
// invalid_argument for an unknown name. "auto" is Codec::automatic.
Result<Codec> codec_from_name(std::string_view name);
// Whether it is the codec of a stream.
bool codec_is_available(Codec codec);
// Whether a message or a volume may ask for it; true for automatic too.
bool codec_is_choosable(Codec codec);

struct CodecChoice {
  Codec codec;
  int level;
};
// What to compress plain with when codec and level are asked for. For any codec but automatic that
// is just these. For automatic it is a codec that suits the bytes, or none when no codec would make
// them smaller. The choice costs little compared to the codec, and about a microsecond for each 64
// KiB of noise. level: 0 to 9. Thread-safe.
CodecChoice choose_codec(Codec codec, int level, ByteView plain);
// What automatic takes at a level for all bytes that look compressible (looks_compressible() in
// sample.h); nothing where the choice depends on more of the bytes.
std::optional<CodecChoice> automatic_choice(int level);

// The most bytes that compress() can write for plain_size bytes. For automatic it covers any
// choice.
std::size_t stream_size_bound(Codec codec, std::size_t plain_size);

// Writes the stream of plain into out (at least stream_size_bound() bytes) and returns its size.
// Not for automatic: choose first. level: 0 = the codec's default, 1 fastest … 9 smallest.
// Thread-safe; scratch memory is per thread.
Result<std::size_t> compress(Codec codec, int level, ByteView plain, MutableByteView out);

// The same into an output of any size. Returns nothing when the stream would not fit or would be
// longer than size_max, or when the arguments are not valid. So a sealer can compress straight into
// a record that has no room for the bound. With more room than size_max some codecs run faster.
std::optional<std::size_t> compress_to_fit(Codec codec, int level, ByteView plain,
                                           MutableByteView out, std::size_t size_max = SIZE_MAX);

// Decodes exactly plain.size() bytes, else corrupt; plain is then zeros. May throw std::bad_alloc.
Result<void> decompress(Codec codec, ByteView stream, MutableByteView plain);

}  // namespace nacre::engine
