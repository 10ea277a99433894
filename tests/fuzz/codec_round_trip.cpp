// SPDX-License-Identifier: Apache-2.0
// Any bytes through every codec and back. Input: level, then the plain bytes.
#include <cstdlib>

#include "gpu_engine/codec/codec.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nacre::engine;
  if (size == 0) return 0;
  const int level = data[0] % (codec_level_max + 1);
  const nacre::ByteView plain(data + 1, size - 1);
  static nacre::Bytes stream;
  static nacre::Bytes decoded;
  for (const Codec wanted : {Codec::lz77, Codec::zstd, Codec::rle, Codec::huffman, Codec::gdeflate,
                             Codec::lzw, Codec::automatic}) {
    const CodecChoice choice = choose_codec(wanted, level, plain);
    stream.resize(stream_size_bound(choice.codec, plain.size()));
    decoded.assign(plain.size(), 0xee);
    const auto stream_size = compress(choice.codec, choice.level, plain, stream);
    if (!stream_size) std::abort();
    if (!decompress(choice.codec, nacre::ByteView(stream).first(*stream_size), decoded))
      std::abort();
    if (!std::equal(plain.begin(), plain.end(), decoded.begin())) std::abort();
  }
  return 0;
}
