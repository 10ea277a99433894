// SPDX-License-Identifier: Apache-2.0
// Any bytes to the decoder of one codec (NACRE_FUZZ_CODEC): a verdict or the bytes, and nothing
// beyond either buffer.
#include "gpu_engine/codec/codec.h"
#include "tests/fuzz/decoder_input.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nacre::engine;
  const DecoderInput input = read_decoder_input(data, size);
  static_cast<void>(decompress(Codec::NACRE_FUZZ_CODEC, input.stream, input.plain));
  return 0;
}
