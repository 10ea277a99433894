// SPDX-License-Identifier: Apache-2.0
// How `auto` chooses. What no codec makes smaller is stored. For the rest there are two that no
// other codec comes near: at the fastest level gdeflate saves most for its time, at the thorough
// ones zstd; in between gdeflate is better on ordinary bytes and zstd on those that repeat
// themselves very much, and on short and long messages, for a GDeflate page has 200 bytes that say
// nothing and reaches no further back than its 64 KiB.
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

// Whether LZ4, at its fastest, makes a third or less of some bytes from the middle.
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
  // Zstd is so much the faster one here that its next level takes no longer; but its third saves no
  // more than its second.
  if (is_for_zstd) return {Codec::zstd, level == 2 ? 2 : level + 1};
  return {Codec::gdeflate, level};
}

}  // namespace nacre::engine
