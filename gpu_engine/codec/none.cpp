// SPDX-License-Identifier: Apache-2.0
// Codec none: the stream is the plain bytes.
#include <algorithm>

#include "gpu_engine/codec/codec_parts.h"

namespace nacre::engine {
namespace {

std::size_t none_size_bound(std::size_t plain_size) {
  return plain_size;
}

std::optional<std::size_t> compress_none(int /*level*/, ByteView plain, MutableByteView out,
                                         std::size_t size_max) {
  if (std::min(out.size(), size_max) < plain.size()) return std::nullopt;
  std::copy(plain.begin(), plain.end(), out.begin());
  return plain.size();
}

bool decompress_none(ByteView stream, MutableByteView plain) {
  if (stream.size() != plain.size()) return false;
  std::copy(stream.begin(), stream.end(), plain.begin());
  return true;
}

}  // namespace

const CodecParts none_codec = {none_size_bound, compress_none, decompress_none};

}  // namespace nacre::engine
