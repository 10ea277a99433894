// SPDX-License-Identifier: Apache-2.0
// Cuts a message into sub-blocks, and stores those that do not get smaller as they are. The decoder
// checks every stored size before it hands a sub-block to a codec.
#include "gpu_engine/codec/sub_blocks.h"

#include <algorithm>
#include <new>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/sample.h"

namespace nacre::engine {
namespace {

constexpr std::size_t word_size_bytes = 4;
constexpr std::uint32_t stored_as_is = 1u << 31;

std::size_t encode_or_give_up(EncodeSubBlock encode, int level, ByteView plain,
                              MutableByteView out) {
  if (!looks_compressible(plain)) return 0;
  try {
    return encode(level, plain, out);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace

std::size_t sub_blocks_size_bound(std::size_t plain_size) {
  return plain_size +
         round_up(plain_size, sub_block_size_bytes) / sub_block_size_bytes * word_size_bytes;
}

std::optional<std::size_t> encode_sub_blocks(EncodeSubBlock encode, int level, ByteView plain,
                                             MutableByteView out, std::size_t size_max) {
  std::size_t written = 0;
  while (!plain.empty()) {
    const ByteView block = plain.first(std::min<std::size_t>(plain.size(), sub_block_size_bytes));
    if (out.size() - written < word_size_bytes + 1) return std::nullopt;
    Byte* const word = out.data() + written;
    written += word_size_bytes;

    std::size_t stored = encode_or_give_up(encode, level, block, out.subspan(written));
    std::uint32_t flag = 0;
    if (stored == 0 || stored >= block.size()) {
      if (std::min(out.size(), size_max) < written + block.size()) return std::nullopt;
      std::copy(block.begin(), block.end(), out.begin() + static_cast<std::ptrdiff_t>(written));
      stored = block.size();
      flag = stored_as_is;
    }
    store_le(word, static_cast<std::uint32_t>(stored) | flag);
    written += stored;
    plain = plain.subspan(block.size());
  }
  if (written > size_max) return std::nullopt;
  return written;
}

bool decode_sub_blocks(DecodeSubBlock decode, ByteView stream, MutableByteView plain) {
  while (!plain.empty()) {
    const MutableByteView block =
        plain.first(std::min<std::size_t>(plain.size(), sub_block_size_bytes));
    if (stream.size() < word_size_bytes) return false;
    const auto word = load_le<std::uint32_t>(stream.data());
    stream = stream.subspan(word_size_bytes);
    const std::size_t stored = word & ~stored_as_is;
    if (stored > stream.size()) return false;

    if (word & stored_as_is) {
      if (stored != block.size()) return false;
      std::copy_n(stream.begin(), stored, block.begin());
    } else {
      if (stored == 0 || stored >= block.size()) return false;
      if (!decode(stream.first(stored), block)) return false;
    }
    stream = stream.subspan(stored);
    plain = plain.subspan(block.size());
  }
  return stream.empty();
}

}  // namespace nacre::engine
