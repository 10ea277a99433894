// SPDX-License-Identifier: Apache-2.0
// Codec lz77: LZ4 blocks (the block format of lz4/doc/lz4_Block_format.md). The fast levels use our
// own encoder, which is as fast as liblz4's and makes slightly smaller blocks. The thorough levels
// and the decoder are liblz4's.
//
// The stream is framed as codec/sub_blocks.h says; a coded sub-block is one LZ4 block. It has no
// dictionary: it refers to nothing before its own first byte.
#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <memory>
#include <new>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec_parts.h"
#include "gpu_engine/codec/lz4_fast.h"
#include "gpu_engine/codec/sub_blocks.h"

namespace nacre::engine {
namespace {

// What a level means: the fast matcher and how eagerly it skips ahead, or the thorough one (LZ4HC)
// with its own level.
struct Effort {
  int acceleration;
  int thorough_level;
};
constexpr Effort efforts[10] = {
    {1, 0},  // default
    {8, 0}, {4, 0}, {2, 0}, {1, 0}, {0, 3}, {0, 4}, {0, 6}, {0, 9}, {0, LZ4HC_CLEVEL_MAX},
};
static_assert(efforts[lz4_fast_level_max].thorough_level == 0 &&
              efforts[lz4_fast_level_max + 1].thorough_level != 0);

const char* chars(const Byte* bytes) {
  return reinterpret_cast<const char*>(bytes);
}
char* chars(Byte* bytes) {
  return reinterpret_cast<char*>(bytes);
}

// LZ4HC's tables (256 KiB), kept for the thread. nullptr when there is no memory; the next call
// then tries again.
void* thorough_state() {
  static thread_local std::unique_ptr<Byte[]> state;
  if (!state) state.reset(new (std::nothrow) Byte[static_cast<std::size_t>(LZ4_sizeofStateHC())]);
  return state.get();
}

std::size_t encode_block(int level, ByteView plain, MutableByteView out) {
  const Effort& effort = efforts[level];
  if (effort.thorough_level == 0) return encode_lz4_fast(effort.acceleration, plain, out);
  const int plain_size = static_cast<int>(plain.size());
  const int out_size = static_cast<int>(
      std::min(out.size(), static_cast<std::size_t>(LZ4_COMPRESSBOUND(sub_block_size_bytes))));
  void* const state = thorough_state();
  if (state == nullptr) return 0;
  return static_cast<std::size_t>(LZ4_compress_HC_extStateHC(
      state, chars(plain.data()), chars(out.data()), plain_size, out_size, effort.thorough_level));
}

bool decode_block(ByteView coded, MutableByteView plain) {
  const int plain_size = static_cast<int>(plain.size());
  return LZ4_decompress_safe(chars(coded.data()), chars(plain.data()),
                             static_cast<int>(coded.size()), plain_size) == plain_size;
}

std::optional<std::size_t> compress_lz77(int level, ByteView plain, MutableByteView out,
                                         std::size_t size_max) {
  return encode_sub_blocks(encode_block, level, plain, out, size_max);
}

bool decompress_lz77(ByteView stream, MutableByteView plain) {
  return decode_sub_blocks(decode_block, stream, plain);
}

}  // namespace

const CodecParts lz77_codec = {sub_blocks_size_bound, compress_lz77, decompress_lz77};

}  // namespace nacre::engine
