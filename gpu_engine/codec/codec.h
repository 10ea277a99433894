// SPDX-License-Identifier: Apache-2.0
// The registry of codecs and the contract that each of them keeps. A stream is a sequence of
// sub-blocks (see docs/FORMAT.md, "Codec streams"). Every codec takes any byte values and any
// length from 0 to message_size_bytes_max, and none of its streams is longer than
// stream_size_bound(). Decoders check every bound: hostile bytes give ErrorCode::corrupt.
//
// A codec that gets no memory for its tables asks again at the next call. Until then decompress()
// throws std::bad_alloc, which says nothing about the stream. Compression does not throw: zstd
// fails, and the other codecs store the bytes as they are. All functions are thread-safe; scratch
// memory is per thread.
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
  // Never the codec of a stream or of a record: choose_codec() replaces it by one of the others.
  automatic = 255,
};

inline constexpr int codec_level_max = 9;

std::string_view to_string(Codec codec);
// invalid_argument for an unknown name. "auto" is Codec::automatic.
Result<Codec> codec_from_name(std::string_view name);
// Whether streams of this codec exist; false for automatic and for unknown numbers.
bool codec_is_available(Codec codec);
// Whether a message or a volume may ask for this codec; true for automatic too.
bool codec_is_choosable(Codec codec);

struct CodecChoice {
  Codec codec;
  int level;
};
// The codec and level with which plain is to be compressed. Any codec but automatic is returned as
// it is, with its level. In place of automatic stands a codec that suits the bytes, or none when no
// codec would make them smaller. The choice costs little compared to the compression: one or two
// microseconds for each 64 KiB of noise. level: 0 to 9.
CodecChoice choose_codec(Codec codec, int level, ByteView plain);
// The choice that stands for automatic at this level for all bytes that look compressible
// (looks_compressible() in sample.h). Nothing where the choice also depends on the bytes.
std::optional<CodecChoice> automatic_choice(int level);

// The most bytes that compress() can write for plain_size bytes. The bound of automatic is the
// largest of all codecs' bounds.
std::size_t stream_size_bound(Codec codec, std::size_t plain_size);

// Writes the stream of plain into out (at least stream_size_bound() bytes) and returns its size.
// codec: not automatic (choose first). level: 0 = the codec's default, 1 fastest … 9 smallest.
// Errors: unsupported (codec), invalid_argument (level), too_big (plain is longer than
// message_size_bytes_max), range (out is too small), out_of_memory.
Result<std::size_t> compress(Codec codec, int level, ByteView plain, MutableByteView out);

// The same as compress(), but out may be of any size. Returns nothing when the stream would not fit
// or would be longer than size_max, when the arguments are not valid, or when zstd gets no memory.
// So a sealer can compress straight into a record that has no room for the bound. Some codecs run
// faster when out has more room than size_max.
std::optional<std::size_t> compress_to_fit(Codec codec, int level, ByteView plain,
                                           MutableByteView out, std::size_t size_max = SIZE_MAX);

// Decodes a stream of exactly plain.size() bytes. Any other stream is corrupt. Further errors:
// unsupported (codec) and too_big. plain is zeros when the stream is corrupt, and when
// std::bad_alloc is thrown.
Result<void> decompress(Codec codec, ByteView stream, MutableByteView plain);

}  // namespace nacre::engine
