// SPDX-License-Identifier: Apache-2.0
// The choice that `auto` makes, and the sample by which it and the other codecs leave alone what
// does not compress.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/codec/sample.h"
#include "tests/gpu_engine/gdeflate_vectors.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

constexpr std::array stream_codecs = {Codec::none,    Codec::lz77,     Codec::zstd, Codec::rle,
                                      Codec::huffman, Codec::gdeflate, Codec::lzw};

std::size_t size_under(Codec codec, int level, ByteView plain) {
  Bytes stream(stream_size_bound(codec, plain.size()));
  return std::min(compress(codec, level, plain, stream).value(), plain.size());
}

TEST(Sample, takes_noise_for_noise) {
  TestRandom random;
  int mistaken = 0;
  for (int round = 0; round < 1000; ++round) {
    const std::size_t size = 4096 + random.below(sub_block_size_bytes - 4095);
    mistaken += looks_compressible(random.bytes(size));
  }
  EXPECT_LE(mistaken, 1);
  EXPECT_FALSE(looks_compressible(random.bytes(1u << 20)));
}

TEST(Sample, sees_whatever_codecs_make_smaller) {
  TestRandom random;
  for (const std::size_t size : {4096u, 10000u, 65536u}) {
    EXPECT_TRUE(looks_compressible(make_data(DataKind::zero, size, random)));
    EXPECT_TRUE(looks_compressible(make_data(DataKind::text, size, random)));
    Bytes seven_bits = random.bytes(size);
    for (Byte& byte : seven_bits)
      byte &= 0x7f;
    EXPECT_TRUE(looks_compressible(seven_bits));
  }
  for (const Bytes& plain : read_corpus_samples())
    for (std::size_t at = 0; at < plain.size(); at += 4096)
      EXPECT_TRUE(looks_compressible(ByteView(plain).subspan(at, 4096)));
}

TEST(Sample, sees_noise_that_repeats_at_any_distance) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Bytes plain = random.bytes(4096 + random.below(sub_block_size_bytes - 4095));
    const std::size_t distance = 1 + random.below(plain.size() / 2);
    for (std::size_t i = distance; i < plain.size(); ++i)
      plain[i] = plain[i - distance];
    EXPECT_TRUE(looks_compressible(plain)) << plain.size() << " bytes, distance " << distance;
  }
}

TEST(Sample, looks_at_each_sub_block) {
  TestRandom random;
  Bytes plain = random.bytes(1u << 20);
  std::fill_n(plain.begin() + 7 * sub_block_size_bytes, sub_block_size_bytes / 2, Byte{0});
  EXPECT_TRUE(looks_compressible(plain));
}

TEST(Sample, lets_what_is_short_be_tried) {
  TestRandom random;
  for (const std::size_t size : {1u, 7u, 8u, 100u, 4095u})
    EXPECT_TRUE(looks_compressible(random.bytes(size)));
  EXPECT_FALSE(looks_compressible({}));
}

TEST(AutoCodec, leaves_every_other_codec_as_it_was_asked_for) {
  TestRandom random;
  const Bytes noise = random.bytes(65536);
  for (const Codec codec : stream_codecs) {
    const CodecChoice choice = choose_codec(codec, 5, noise);
    EXPECT_EQ(choice.codec, codec);
    EXPECT_EQ(choice.level, 5);
  }
}

TEST(AutoCodec, is_a_choice_and_no_codec_of_a_stream) {
  EXPECT_EQ(codec_from_name("auto").value(), Codec::automatic);
  EXPECT_EQ(to_string(Codec::automatic), "auto");
  EXPECT_TRUE(codec_is_choosable(Codec::automatic));
  EXPECT_FALSE(codec_is_choosable(Codec{7}));
  EXPECT_FALSE(codec_is_available(Codec::automatic));
  Bytes bytes(1000);
  EXPECT_EQ(error_of(compress(Codec::automatic, 0, bytes, bytes)), ErrorCode::unsupported);
  EXPECT_EQ(error_of(decompress(Codec::automatic, bytes, bytes)), ErrorCode::unsupported);
  for (const std::size_t size : edge_sizes)
    for (const Codec codec : stream_codecs)
      EXPECT_GE(stream_size_bound(Codec::automatic, size), stream_size_bound(codec, size));
}

TEST(AutoCodec, stores_noise_and_compresses_the_rest_at_every_level_and_size) {
  TestRandom random;
  for (int level = 0; level <= codec_level_max; ++level) {
    for (const std::size_t size : edge_sizes) {
      const bool is_sampled = size >= 4096;
      const Codec of_noise = choose_codec(Codec::automatic, level, random.bytes(size)).codec;
      EXPECT_TRUE(of_noise == Codec::none || !is_sampled);
      const Bytes text = make_data(DataKind::text, size, random);
      const CodecChoice choice = choose_codec(Codec::automatic, level, text);
      EXPECT_TRUE(codec_is_available(choice.codec));
      EXPECT_GE(choice.level, 1);
      EXPECT_LE(choice.level, codec_level_max);
      EXPECT_TRUE(size_under(choice.codec, choice.level, text) < size / 2 || !is_sampled);
    }
  }
}

TEST(AutoCodec, says_what_it_takes_at_levels_where_that_is_known_beforehand) {
  TestRandom random;
  int known = 0;
  for (int level = 1; level <= codec_level_max; ++level) {
    const auto always = automatic_choice(level);
    known += always.has_value();
    for (const DataKind kind : data_kinds) {
      for (const std::size_t size : edge_sizes) {
        const Bytes plain = make_data(kind, size, random);
        const CodecChoice choice = choose_codec(Codec::automatic, level, plain);
        const bool compressible = looks_compressible(plain);
        EXPECT_EQ(choice.codec == Codec::none, !compressible);
        if (!always || !compressible) continue;
        EXPECT_EQ(choice.codec, always->codec);
        EXPECT_EQ(choice.level, always->level);
      }
    }
  }
  EXPECT_EQ(known, 5);
  EXPECT_FALSE(automatic_choice(0));
}

// Uses 64 KiB of each file. codec_corpus_test.cpp uses more if the files lie next to the checkout.
TEST(AutoCodec, comes_near_the_best_codec_on_the_corpus) {
  for (const Bytes& plain : read_corpus_samples()) {
    for (int level = 1; level <= codec_level_max; ++level) {
      std::size_t best = std::numeric_limits<std::size_t>::max();
      for (const Codec codec : stream_codecs)
        best = std::min(best, size_under(codec, level, plain));
      const CodecChoice choice = choose_codec(Codec::automatic, level, plain);
      EXPECT_LE(size_under(choice.codec, choice.level, plain), best * 103 / 100)
          << to_string(choice.codec) << ", level " << level;
    }
  }
}

TEST(AutoCodec, gives_up_a_stream_that_is_longer_than_is_wanted) {
  TestRandom random;
  for (const Codec codec : stream_codecs) {
    for (const DataKind kind : data_kinds) {
      const Bytes plain = make_data(kind, 1 + random.below(200000), random);
      Bytes out(stream_size_bound(codec, plain.size()));
      const std::size_t size = compress(codec, 0, plain, out).value();
      EXPECT_FALSE(compress_to_fit(codec, 0, plain, out, size - 1)) << to_string(codec);
      const auto again = compress_to_fit(codec, 0, plain, out, size);
      // Only what would not be smaller than plain may be given up earlier than that.
      EXPECT_TRUE(again == size || size >= plain.size()) << to_string(codec);
    }
  }
}

}  // namespace
}  // namespace nacre::engine
