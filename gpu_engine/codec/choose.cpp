// SPDX-License-Identifier: Apache-2.0
// How `auto` chooses. Bytes that no codec makes smaller are stored. For all others it takes one of
// two codecs. At the fastest level gdeflate saves most for its time; at the thorough levels zstd
// does. In between gdeflate is better on ordinary bytes. Zstd is better on bytes that repeat
// themselves very much, and on short and long messages: some 200 bytes of a GDeflate page carry no
// data, and its matches reach no further back than its own 64 KiB.
#include <array>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/codec/sample.h"

namespace nacre::engine {
namespace {

constexpr int default_level = 3;
constexpr int fastest_level = 1;
constexpr int first_thorough_level = 6;
constexpr std::size_t short_message_bytes = sub_block_size_bytes / 2;

// Whether LZ4 at its fastest reduces 16 KiB from the middle to a third or less. plain has at least
// that many bytes.
bool repeats_itself_much(ByteView plain) {
  constexpr std::size_t sample_size = 16384;
  std::array<Byte, sample_size> room;
  return compress_to_fit(Codec::lz77, fastest_level,
                         plain.subspan((plain.size() - sample_size) / 2, sample_size), room,
                         sample_size / 3)
      .has_value();
}

}  // namespace

std::optional<CodecChoice> automatic_choice(int level) {
  if (level == fastest_level) return CodecChoice{Codec::gdeflate, level};
  if (level >= first_thorough_level) return CodecChoice{Codec::zstd, level};
  return std::nullopt;
}

CodecChoice choose_codec(Codec codec, int level, ByteView plain) {
  if (codec != Codec::automatic) return {codec, level};
  if (level == 0) level = default_level;
  if (!looks_compressible(plain)) return {Codec::none, level};
  if (const auto choice = automatic_choice(level)) return *choice;
  const bool is_for_zstd = plain.size() <= short_message_bytes ||
                           plain.size() > sub_block_size_bytes || repeats_itself_much(plain);
  // Zstd is so much faster on these bytes that its next level takes no longer. Its third level
  // saves no more than its second.
  if (is_for_zstd) return {Codec::zstd, level == 2 ? 2 : level + 1};
  return {Codec::gdeflate, level};
}

}  // namespace nacre::engine
