// SPDX-License-Identifier: Apache-2.0
// Which codecs devices code and decode, and how thoroughly. Free of CUDA: the planner asks before a
// device is touched. piece_codecs.h has their kernels, in the same order.
#pragma once

#include <array>

#include "gpu_engine/codec/codec.h"
#include "gpu_engine/codec/lz4_fast.h"

namespace nacre::engine::cuda {

// Every one of them is decoded, whatever level it was coded at.
struct DeviceCodec {
  Codec codec;
  // Levels 0 … this one are coded on devices; more thorough ones ask for a ratio that only the
  // cpu's encoder reaches. -1: devices do not code it.
  int encode_level_max;
};

inline constexpr std::array device_codecs = {
    DeviceCodec{Codec::lz77, lz4_fast_level_max},
    DeviceCodec{Codec::rle, codec_level_max},
    DeviceCodec{Codec::lzw, codec_level_max},
    DeviceCodec{Codec::gdeflate, -1},
    DeviceCodec{Codec::huffman, -1},
};

constexpr const DeviceCodec* find_device_codec(Codec codec) {
  for (const DeviceCodec& entry : device_codecs) {
    if (entry.codec == codec) return &entry;
  }
  return nullptr;
}

}  // namespace nacre::engine::cuda
