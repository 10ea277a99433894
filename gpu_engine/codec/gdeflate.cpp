// SPDX-License-Identifier: Apache-2.0
// Codecs gdeflate and huffman. The stream is framed as codec/sub_blocks.h says; a coded sub-block
// is one GDeflate page (gdeflate/format.h) of its plain bytes, without a tile stream around it. A
// page of codec huffman has no matches, and the codec's level is not used.
//
// A page has at least 128 bytes, so sub-blocks of up to 128 bytes are stored as they are. About 200
// bytes of every page are padding at the ends of its lanes.
#include "gpu_engine/codec/codec_parts.h"
#include "gpu_engine/codec/gdeflate/decoder.h"
#include "gpu_engine/codec/gdeflate/encoder.h"
#include "gpu_engine/codec/sub_blocks.h"

namespace nacre::engine {
namespace {

constexpr int default_gdeflate_level = 3;

std::size_t encode_gdeflate(int level, ByteView plain, MutableByteView out) {
  return gdeflate::encode_page(level == 0 ? default_gdeflate_level : level, plain, out);
}

std::size_t encode_literals(int /*level*/, ByteView plain, MutableByteView out) {
  return gdeflate::encode_page_of_literals(plain, out);
}

std::optional<std::size_t> compress_gdeflate(int level, ByteView plain, MutableByteView out,
                                             std::size_t size_max) {
  return encode_sub_blocks(encode_gdeflate, level, plain, out, size_max);
}

std::optional<std::size_t> compress_huffman(int level, ByteView plain, MutableByteView out,
                                            std::size_t size_max) {
  return encode_sub_blocks(encode_literals, level, plain, out, size_max);
}

bool decompress_gdeflate(ByteView stream, MutableByteView plain) {
  return decode_sub_blocks(gdeflate::decode_page, stream, plain);
}

}  // namespace

const CodecParts gdeflate_codec = {sub_blocks_size_bound, compress_gdeflate, decompress_gdeflate};
const CodecParts huffman_codec = {sub_blocks_size_bound, compress_huffman, decompress_gdeflate};

}  // namespace nacre::engine
