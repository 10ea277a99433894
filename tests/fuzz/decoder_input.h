// SPDX-License-Identifier: Apache-2.0
// The input of a decoder's harness: the plain size that is asked for, u32, modulo plain_size_max +
// 1, then the stream. Both sides of the decoder end at a page that may not be touched.
#pragma once

#include <algorithm>

#include "tests/gpu_engine/guarded_memory.h"

namespace nacre::engine {

inline constexpr std::size_t plain_size_max = 140000;  // sub-blocks and a bit more
inline constexpr std::size_t stream_size_max = 1u << 18;

struct DecoderInput {
  ByteView stream;
  MutableByteView plain;
};

// Valid until the next call.
inline DecoderInput read_decoder_input(const std::uint8_t* data, std::size_t size) {
  static GuardedMemory input(stream_size_max);
  static GuardedMemory output(plain_size_max);
  if (size < sizeof(std::uint32_t)) return {};
  const std::size_t stream_size = std::min(size - sizeof(std::uint32_t), stream_size_max);
  const MutableByteView stream = input.last(stream_size);
  std::copy_n(data + sizeof(std::uint32_t), stream_size, stream.begin());
  return {stream, output.last(load_le<std::uint32_t>(data) % (plain_size_max + 1))};
}

}  // namespace nacre::engine
