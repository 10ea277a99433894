// SPDX-License-Identifier: Apache-2.0
// The streams compared, in both directions, with the libraries that define their parts, which are
// called directly.
#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

constexpr std::uint32_t stored_as_is = 1u << 31;

const char* chars(const Byte* bytes) {
  return reinterpret_cast<const char*>(bytes);
}
char* chars(Byte* bytes) {
  return reinterpret_cast<char*>(bytes);
}

// Decodes an lz77 stream by the head comment of codec/lz77.cpp and LZ4_decompress_safe() alone.
Bytes decode_by_the_book(ByteView stream, std::size_t plain_size) {
  Bytes plain;
  while (!stream.empty()) {
    const auto word = load_le<std::uint32_t>(stream.data());
    const ByteView stored = stream.subspan(4, word & ~stored_as_is);
    stream = stream.subspan(4 + stored.size());
    if (word & stored_as_is) {
      plain.insert(plain.end(), stored.begin(), stored.end());
      continue;
    }
    Bytes block(std::min<std::size_t>(sub_block_size_bytes, plain_size - plain.size()));
    EXPECT_EQ(LZ4_decompress_safe(chars(stored.data()), chars(block.data()),
                                  static_cast<int>(stored.size()), static_cast<int>(block.size())),
              static_cast<int>(block.size()));
    plain.insert(plain.end(), block.begin(), block.end());
  }
  return plain;
}

// Encodes by the same book with LZ4_compress_default() or LZ4HC.
Bytes encode_by_the_book(ByteView plain, bool thorough) {
  Bytes stream;
  while (!plain.empty()) {
    const ByteView block = plain.first(std::min<std::size_t>(sub_block_size_bytes, plain.size()));
    plain = plain.subspan(block.size());
    Bytes stored(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(block.size()))));
    const int size =
        thorough
            ? LZ4_compress_HC(chars(block.data()), chars(stored.data()),
                              static_cast<int>(block.size()), static_cast<int>(stored.size()),
                              LZ4HC_CLEVEL_DEFAULT)
            : LZ4_compress_default(chars(block.data()), chars(stored.data()),
                                   static_cast<int>(block.size()), static_cast<int>(stored.size()));
    stored.resize(static_cast<std::size_t>(size));
    std::uint32_t word = static_cast<std::uint32_t>(size);
    if (stored.size() >= block.size()) {
      stored.assign(block.begin(), block.end());
      word = static_cast<std::uint32_t>(block.size()) | stored_as_is;
    }
    stream.resize(stream.size() + 4);
    store_le(stream.data() + stream.size() - 4, word);
    stream.insert(stream.end(), stored.begin(), stored.end());
  }
  return stream;
}

TEST(Lz77Oracle, liblz4_reads_what_we_write) {
  TestRandom random;
  for (const DataKind kind : data_kinds) {
    for (const std::size_t size : edge_sizes) {
      for (const int level : {0, 1, 3, 5, 7, 9}) {
        const Bytes plain = make_data(kind, size, random);
        Bytes stream(stream_size_bound(Codec::lz77, size));
        stream.resize(compress(Codec::lz77, level, plain, stream).value());
        EXPECT_TRUE(decode_by_the_book(stream, size) == plain) << "size " << size;
      }
    }
  }
}

TEST(Lz77Oracle, we_read_what_liblz4_writes) {
  TestRandom random;
  for (const DataKind kind : data_kinds) {
    for (const std::size_t size : edge_sizes) {
      for (const bool thorough : {false, true}) {
        const Bytes plain = make_data(kind, size, random);
        Bytes decoded(size);
        const auto result = decompress(Codec::lz77, encode_by_the_book(plain, thorough), decoded);
        ASSERT_TRUE(result.has_value()) << "size " << size;
        EXPECT_TRUE(decoded == plain) << "size " << size;
      }
    }
  }
}

TEST(ZstdOracle, libzstd_reads_what_we_write) {
  TestRandom random;
  for (const DataKind kind : data_kinds) {
    for (const std::size_t size : edge_sizes) {
      if (size == 0) continue;
      const Bytes plain = make_data(kind, size, random);
      Bytes stream(stream_size_bound(Codec::zstd, size));
      stream.resize(compress(Codec::zstd, 0, plain, stream).value());
      EXPECT_EQ(ZSTD_getFrameContentSize(stream.data(), stream.size()), size);
      EXPECT_EQ(ZSTD_findFrameCompressedSize(stream.data(), stream.size()), stream.size());
      Bytes decoded(size);
      EXPECT_EQ(ZSTD_decompress(decoded.data(), size, stream.data(), stream.size()), size);
      EXPECT_TRUE(decoded == plain);
    }
  }
}

TEST(ZstdOracle, we_read_what_libzstd_writes) {
  TestRandom random;
  for (const int level : {-5, 1, 3, 9, 19}) {
    for (const std::size_t size : edge_sizes) {
      if (size == 0) continue;
      const Bytes plain = make_data(DataKind::mixed, size, random);
      Bytes stream(ZSTD_compressBound(size));
      stream.resize(ZSTD_compress(stream.data(), stream.size(), plain.data(), size, level));
      Bytes decoded(size);
      ASSERT_TRUE(decompress(Codec::zstd, stream, decoded).has_value()) << "size " << size;
      EXPECT_TRUE(decoded == plain);
    }
  }
}

TEST(ZstdOracle, frames_that_our_stream_is_not_made_of_are_refused) {
  TestRandom random;
  const Bytes plain = make_data(DataKind::text, 5000, random);
  Bytes frame(ZSTD_compressBound(plain.size()));
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), plain.data(), plain.size()));
  ZSTD_freeCCtx(context);
  Bytes decoded(plain.size());
  EXPECT_EQ(error_of(decompress(Codec::zstd, frame, decoded)), ErrorCode::corrupt)
      << "a frame without its content size";

  // Two frames, and a skippable frame (magic 0x184D2A50) before a good one.
  Bytes half(ZSTD_compressBound(2500));
  half.resize(ZSTD_compress(half.data(), half.size(), plain.data(), 2500, 1));
  Bytes two = half;
  two.insert(two.end(), half.begin(), half.end());
  EXPECT_EQ(error_of(decompress(Codec::zstd, two, decoded)), ErrorCode::corrupt);
  const Bytes skippable_frame = {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0};
  Bytes behind = half;
  behind.insert(behind.end(), skippable_frame.begin(), skippable_frame.end());
  Bytes skippable = skippable_frame;
  skippable.insert(skippable.end(), half.begin(), half.end());
  EXPECT_EQ(error_of(decompress(Codec::zstd, behind, MutableByteView(decoded).first(2500))),
            ErrorCode::corrupt);
  EXPECT_EQ(error_of(decompress(Codec::zstd, skippable, MutableByteView(decoded).first(2500))),
            ErrorCode::corrupt);
}

}  // namespace
}  // namespace nacre::engine
