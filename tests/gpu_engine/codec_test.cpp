// SPDX-License-Identifier: Apache-2.0
// What every codec of the registry promises.
#include "gpu_engine/codec/codec.h"

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

constexpr std::array built_codecs = {Codec::none,    Codec::lz77,     Codec::zstd, Codec::rle,
                                     Codec::huffman, Codec::gdeflate, Codec::lzw};
constexpr std::array sub_block_codecs = {Codec::lz77, Codec::rle, Codec::huffman, Codec::gdeflate,
                                         Codec::lzw};

Bytes compressed(Codec codec, int level, ByteView plain) {
  Bytes stream(stream_size_bound(codec, plain.size()));
  const auto size = compress(codec, level, plain, stream);
  EXPECT_TRUE(size.has_value()) << (size ? "" : size.error().message);
  stream.resize(size.value_or(0));
  return stream;
}

void expect_round_trip(Codec codec, int level, const Bytes& plain) {
  const Bytes stream = compressed(codec, level, plain);
  EXPECT_LE(stream.size(), stream_size_bound(codec, plain.size()));
  Bytes decoded(plain.size(), 0xee);
  const auto result = decompress(codec, stream, decoded);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(decoded == plain);
}

TEST(Codec, gives_back_what_it_was_given) {
  TestRandom random;
  for (const Codec codec : built_codecs) {
    for (const DataKind kind : data_kinds) {
      for (const std::size_t size : edge_sizes) {
        SCOPED_TRACE(testing::Message()
                     << to_string(codec) << " kind " << static_cast<int>(kind) << " size " << size);
        expect_round_trip(codec, 0, make_data(kind, size, random));
      }
    }
  }
}

TEST(Codec, gives_back_what_it_was_given_at_every_level) {
  TestRandom random;
  for (const Codec codec : built_codecs) {
    for (int level = 0; level <= codec_level_max; ++level) {
      for (const DataKind kind : data_kinds) {
        SCOPED_TRACE(testing::Message() << to_string(codec) << " level " << level);
        expect_round_trip(codec, level, make_data(kind, 65537 + random.below(70000), random));
      }
    }
  }
}

TEST(Codec, gives_back_random_sizes) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    const Codec codec = built_codecs[random.below(built_codecs.size())];
    const std::size_t size = random.below(1u << (1 + random.below(18)));
    SCOPED_TRACE(testing::Message() << to_string(codec) << " size " << size);
    expect_round_trip(codec, static_cast<int>(random.below(10)),
                      make_data(data_kinds[random.below(data_kinds.size())], size, random));
  }
}

TEST(Codec, makes_compressible_data_smaller) {
  TestRandom random;
  const Bytes text = make_data(DataKind::text, 200000, random);
  EXPECT_LT(compressed(Codec::lz77, 0, text).size(), text.size() / 2);
  EXPECT_LT(compressed(Codec::zstd, 0, text).size(), text.size() / 3);
  EXPECT_LT(compressed(Codec::gdeflate, 0, text).size(), text.size() / 3);
  EXPECT_LT(compressed(Codec::huffman, 0, text).size(), text.size() * 6 / 10);
  // The thorough end of the scale is worth its time.
  EXPECT_LT(compressed(Codec::lz77, 9, text).size(), compressed(Codec::lz77, 1, text).size());
  EXPECT_LT(compressed(Codec::zstd, 9, text).size(), compressed(Codec::zstd, 1, text).size());
  EXPECT_LT(compressed(Codec::gdeflate, 9, text).size(),
            compressed(Codec::gdeflate, 1, text).size());
}

TEST(Codec, stores_what_does_not_compress_at_the_price_of_one_word_a_sub_block) {
  TestRandom random;
  for (const std::size_t size : edge_sizes) {
    const std::size_t sub_blocks = round_up(size, sub_block_size_bytes) / sub_block_size_bytes;
    const Bytes noise = random.bytes(size);
    for (const Codec codec : sub_block_codecs) {
      EXPECT_LE(compressed(codec, 0, noise).size(), size + 4 * sub_blocks);
      EXPECT_EQ(stream_size_bound(codec, size), size + 4 * sub_blocks);
    }
  }
}

TEST(Codec, sub_blocks_do_not_need_each_other) {
  TestRandom random;
  for (const Codec codec : sub_block_codecs) {
    const Bytes plain = make_data(DataKind::mixed, 3 * sub_block_size_bytes + 1000, random);
    const Bytes stream = compressed(codec, 0, plain);
    ByteView rest(stream);
    for (std::size_t done = 0; done < plain.size();) {
      const std::size_t size = std::min<std::size_t>(sub_block_size_bytes, plain.size() - done);
      const std::size_t stored = load_le<std::uint32_t>(rest.data()) & 0x7fffffffu;
      Bytes decoded(size);
      ASSERT_TRUE(decompress(codec, rest.first(4 + stored), decoded).has_value());
      EXPECT_TRUE(std::equal(decoded.begin(), decoded.end(), plain.begin() + done));
      rest = rest.subspan(4 + stored);
      done += size;
    }
    EXPECT_TRUE(rest.empty());
  }
}

TEST(Codec, the_stream_of_nothing_is_empty) {
  for (const Codec codec : built_codecs) {
    EXPECT_EQ(stream_size_bound(codec, 0), 0u);
    EXPECT_EQ(compress(codec, 0, {}, {}).value(), 0u);
    EXPECT_TRUE(decompress(codec, {}, {}).has_value());
    const Bytes junk = {0, 0, 0, 0};
    EXPECT_EQ(error_of(decompress(codec, junk, {})), ErrorCode::corrupt);
  }
}

TEST(Codec, refuses_a_plain_size_that_is_not_the_streams) {
  TestRandom random;
  for (const Codec codec : built_codecs) {
    for (const DataKind kind : {DataKind::text, DataKind::random}) {
      const Bytes plain = make_data(kind, 70000, random);
      const Bytes stream = compressed(codec, 0, plain);
      for (const std::size_t size : {0u, 1u, 4464u, 65536u, 69999u, 70001u, 140000u}) {
        Bytes decoded(size);
        EXPECT_EQ(error_of(decompress(codec, stream, decoded)), ErrorCode::corrupt)
            << to_string(codec) << " as " << size;
      }
    }
  }
}

TEST(Codec, refuses_a_stream_that_is_cut_or_has_a_tail) {
  TestRandom random;
  for (const Codec codec : built_codecs) {
    const Bytes plain = make_data(DataKind::text, 66000, random);
    Bytes stream = compressed(codec, 0, plain);
    Bytes decoded(plain.size());
    for (int round = 0; round < 100; ++round) {
      const std::size_t cut = random.below(stream.size());
      EXPECT_EQ(error_of(decompress(codec, ByteView(stream).first(cut), decoded)),
                ErrorCode::corrupt);
    }
    stream.push_back(0);
    EXPECT_EQ(error_of(decompress(codec, stream, decoded)), ErrorCode::corrupt);
  }
}

bool is_hello(std::string_view hex) {
  const Bytes stream = from_hex(hex);
  Bytes plain(5);
  return decompress(Codec::zstd, stream, plain).has_value() &&
         as_text(plain) == std::string_view("hello");
}

// The frame header's bits one by one (RFC 8878, 3.1.1.1); behind it always one raw block.
TEST(ZstdStream, has_neither_checksum_nor_dictionary_nor_a_larger_window) {
  EXPECT_TRUE(
      is_hello("28b52ffd2005"
               "29000068656c6c6f"));
  EXPECT_FALSE(
      is_hello("28b52ffd2805"
               "29000068656c6c6f"))
      << "reserved bit";
  EXPECT_FALSE(
      is_hello("28b52ffd210005"
               "29000068656c6c6f"))
      << "dictionary";
  EXPECT_TRUE(
      is_hello("28b52ffd805005000000"
               "29000068656c6c6f"));
  EXPECT_FALSE(
      is_hello("28b52ffd805105000000"
               "29000068656c6c6f"))
      << "window of 9/8 MiB";
  EXPECT_FALSE(
      is_hello("28b52ffd805805000000"
               "29000068656c6c6f"))
      << "window of 2 MiB";
}

void zstd_frame(const Bytes& plain, ZSTD_cParameter parameter, int value, Bytes& frame) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, parameter, value);
  frame.resize(ZSTD_compressBound(plain.size()));
  frame.resize(ZSTD_compress2(context, frame.data(), frame.size(), plain.data(), plain.size()));
  ZSTD_freeCCtx(context);
}

TEST(ZstdStream, of_libzstd_is_refused_where_it_has_a_checksum_or_a_larger_window) {
  Bytes plain(2u << 20, 7);
  Bytes decoded(plain.size());
  Bytes frame;
  zstd_frame(plain, ZSTD_c_windowLog, 20, frame);
  EXPECT_TRUE(decompress(Codec::zstd, frame, decoded).has_value());
  zstd_frame(plain, ZSTD_c_windowLog, 21, frame);
  EXPECT_EQ(error_of(decompress(Codec::zstd, frame, decoded)), ErrorCode::corrupt);
  plain.resize(5);
  decoded.resize(5);
  zstd_frame(plain, ZSTD_c_checksumFlag, 0, frame);
  EXPECT_TRUE(decompress(Codec::zstd, frame, decoded).has_value());
  zstd_frame(plain, ZSTD_c_checksumFlag, 1, frame);
  EXPECT_EQ(error_of(decompress(Codec::zstd, frame, decoded)), ErrorCode::corrupt);
}

// Debian's libzstd reads the frames of its versions 0.5 to 0.7 too; these bytes are one.
TEST(ZstdStream, of_before_the_rfc_is_refused) {
  EXPECT_FALSE(
      is_hello("27b52ffd2005"
               "40000568656c6c6fc00000"));
}

// The number says how a page was made; a decoder of the one reads the other.
TEST(Codec, huffman_and_gdeflate_have_one_decoder) {
  TestRandom random;
  const Bytes plain = make_data(DataKind::text, 66000, random);
  for (const auto& [made, read] :
       {std::pair{Codec::gdeflate, Codec::huffman}, std::pair{Codec::huffman, Codec::gdeflate}}) {
    const Bytes stream = compressed(made, 1, plain);
    ASSERT_LT(stream.size(), plain.size());
    Bytes decoded(plain.size());
    EXPECT_TRUE(decompress(read, stream, decoded).has_value());
    EXPECT_TRUE(decoded == plain);
  }
}

TEST(Codec, refuses_arguments_that_are_not_valid) {
  const Bytes plain(100, 1);
  Bytes out(1000);
  EXPECT_EQ(error_of(compress(Codec::lz77, 10, plain, out)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(compress(Codec::lz77, -1, plain, out)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(compress(Codec::lz77, 0, plain, MutableByteView(out).first(50))),
            ErrorCode::range);
  for (const Codec unknown : {Codec{7}, Codec{200}}) {
    EXPECT_EQ(error_of(compress(unknown, 0, plain, out)), ErrorCode::unsupported);
    EXPECT_EQ(error_of(decompress(unknown, plain, out)), ErrorCode::unsupported);
    EXPECT_FALSE(codec_is_available(unknown));
    EXPECT_EQ(stream_size_bound(unknown, 100), 0u);
  }
}

TEST(Codec, compresses_into_what_room_there_is_or_says_no) {
  TestRandom random;
  for (const Codec codec : built_codecs) {
    for (const DataKind kind : data_kinds) {
      const Bytes plain = make_data(kind, 1 + random.below(150000), random);
      for (int round = 0; round < 40; ++round) {
        Bytes room(random.below(plain.size() + 100) + 1, 0xcd);
        const std::size_t usable = random.below(room.size());
        const auto size = compress_to_fit(codec, 0, plain, MutableByteView(room).first(usable));
        EXPECT_EQ(std::count(room.begin() + static_cast<std::ptrdiff_t>(usable), room.end(), 0xcd),
                  static_cast<std::ptrdiff_t>(room.size() - usable))
            << to_string(codec) << " wrote past its room";
        if (!size) continue;
        ASSERT_LE(*size, usable);
        Bytes decoded(plain.size());
        ASSERT_TRUE(decompress(codec, ByteView(room).first(*size), decoded).has_value());
        EXPECT_TRUE(decoded == plain);
      }
    }
  }
}

TEST(Codec, names_are_known_or_refused) {
  for (const Codec codec : built_codecs)
    EXPECT_EQ(codec_from_name(to_string(codec)).value(), codec);
  for (const char* name : {"", "lz4", "LZ77", "zstd "})
    EXPECT_EQ(error_of(codec_from_name(name)), ErrorCode::invalid_argument) << name;
  EXPECT_EQ(to_string(Codec{99}), "unknown");
}

}  // namespace
}  // namespace nacre::engine
