// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GDeflate page: the fast rounds must give the verdict and the bytes of the plain
// ones.
#include <cstdlib>

#include "gpu_engine/codec/gdeflate/decoder.h"
#include "gpu_engine/codec/gdeflate/format.h"
#include "tests/fuzz/decoder_input.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nacre::engine;
  const DecoderInput input = read_decoder_input(data, size);
  const auto plain = input.plain.first(input.plain.size() % (gdeflate::page_plain_size_max + 1));
  static nacre::Bytes expected(gdeflate::page_plain_size_max);
  const nacre::MutableByteView plainly = nacre::MutableByteView(expected).first(plain.size());
  const bool accepted = gdeflate::decode_page(input.stream, plain);
  if (gdeflate::decode_page_plainly(input.stream, plainly) != accepted) std::abort();
  if (accepted && !std::equal(plain.begin(), plain.end(), plainly.begin())) std::abort();
  return 0;
}
