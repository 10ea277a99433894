// SPDX-License-Identifier: Apache-2.0
// Which codecs devices encode and decode, and at which levels. Free of CUDA: the planner asks
// before a device is touched. piece_codecs.h has the kernels, in the same order.
#pragma once

#include <array>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/codec/lz4_fast.h"

namespace nacre::engine {

// A codec that devices have. They decode its streams, whatever level these were coded at.
struct DeviceCodec {
  Codec codec;
  // The levels at which devices encode; none if the first is above the last. At other levels users
  // expect a ratio that only the cpu's encoder reaches. Level 0 of gdeflate means level 3, so
  // devices do not encode it.
  int encode_level_min;
  int encode_level_max;
  // The longest message that devices decode. Streams without sub-blocks are one warp's.
  std::uint64_t plain_size_max = message_size_bytes_max;
};

inline constexpr std::array device_codecs = {
    DeviceCodec{Codec::lz77, 0, lz4_fast_level_max},
    DeviceCodec{Codec::rle, 0, codec_level_max},
    DeviceCodec{Codec::lzw, 0, codec_level_max},
    DeviceCodec{Codec::gdeflate, 1, 1},
    DeviceCodec{Codec::huffman, 0, codec_level_max},
    DeviceCodec{Codec::zstd, 1, 0, chunk_size_bytes_max},
};

constexpr const DeviceCodec* find_device_codec(Codec codec) {
  for (const DeviceCodec& entry : device_codecs) {
    if (entry.codec == codec) return &entry;
  }
  return nullptr;
}

}  // namespace nacre::engine
