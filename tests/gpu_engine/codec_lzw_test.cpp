// SPDX-License-Identifier: Apache-2.0
// Codec lzw: its own edges, and libtiff as the judge of its pieces in both directions.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "tests/gpu_engine/framed_pieces.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/tiff_strip.h"

namespace nacre::engine {
namespace {

constexpr std::size_t piece_size_bytes = 8192;

// Some pieces compress so badly that their strings run out, and others compress well. All together
// are smaller when coded.
Bytes make_uneven(std::size_t size, TestRandom& random) {
  Bytes made = make_data(DataKind::text, size, random);
  for (std::size_t start = 0; start < size; start += piece_size_bytes) {
    if (random.below(4) != 0) continue;
    const std::size_t count = std::min(piece_size_bytes, size - start) / (1 + random.below(3));
    const std::size_t alphabet = 1 + random.below(255);
    for (std::size_t i = 0; i < count; ++i)
      made[start + i] = static_cast<Byte>(random.below(alphabet));
  }
  return made;
}

// Codes of TIFF LZW, written bit by bit.
struct CodeString {
  std::size_t bit_count = 0;
  Bytes bytes;

  CodeString& put(unsigned code, unsigned width) {
    for (unsigned i = width; i-- > 0; ++bit_count) {
      if (bit_count % 8 == 0) bytes.push_back(0);
      bytes.back() = static_cast<Byte>(bytes.back() | (code >> i & 1) << (7 - bit_count % 8));
    }
    return *this;
  }
};

constexpr unsigned clear_code = 256;
constexpr unsigned end_code = 257;

TEST(Lzw, gives_back_pieces_that_run_out_of_strings) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    const Bytes plain = make_uneven(1 + random.below(140000), random);
    const Bytes stream = compressed(Codec::lzw, plain);
    Bytes decoded(plain.size(), 0xee);
    ASSERT_TRUE(decompress(Codec::lzw, stream, decoded).has_value());
    ASSERT_TRUE(decoded == plain) << "size " << plain.size();
  }
}

TEST(Lzw, compresses_text) {
  TestRandom random;
  const Bytes text = make_data(DataKind::text, 200000, random);
  EXPECT_LT(compressed(Codec::lzw, text).size(), text.size() / 2);
}

TEST(Lzw, reads_a_code_that_names_the_string_it_makes) {
  const Bytes piece = CodeString()
                          .put(clear_code, 9)
                          .put('a', 9)
                          .put(258, 9)  // aa
                          .put(259, 9)  // aaa
                          .put('b', 9)  // makes 260, aaab
                          .put(260, 9)
                          .put(end_code, 9)
                          .bytes;
  Bytes decoded(11);
  ASSERT_TRUE(decompress(Codec::lzw, frame({piece}), decoded).has_value());
  EXPECT_EQ(as_text(decoded), "aaaaaabaaab");
}

TEST(Lzw, reads_clear_codes_anywhere) {
  const Bytes piece = CodeString()
                          .put(clear_code, 9)
                          .put('a', 9)
                          .put(258, 9)
                          .put(259, 9)
                          .put(260, 9)
                          .put(261, 9)
                          .put(clear_code, 9)
                          .put(clear_code, 9)
                          .put('b', 9)
                          .put(258, 9)
                          .put(end_code, 9)
                          .bytes;
  Bytes decoded(18);
  ASSERT_TRUE(decompress(Codec::lzw, frame({piece}), decoded).has_value());
  EXPECT_EQ(as_text(decoded), "aaaaaaaaaaaaaaabbb");
}

TEST(Lzw, refuses_codes_that_are_not_made_yet_and_pieces_that_do_not_end) {
  const auto piece = [] { return CodeString().put(clear_code, 9).put('a', 9).put(258, 9); };
  const auto whole = [&] { return piece().put(259, 9).put(260, 9).put(261, 9); };
  Bytes decoded(15);
  ASSERT_TRUE(decompress(Codec::lzw, frame({whole().put(end_code, 9).bytes}), decoded).has_value());
  Bytes tail = whole().put(end_code, 9).bytes;
  tail.back() |= 1;  // a bit behind the end
  Bytes more = whole().put(end_code, 9).bytes;
  more.push_back(0);
  for (const Bytes& hostile : {
           piece().put(260, 9).put(258, 9).put(end_code, 9).bytes,       // 260 before 259
           whole().bytes,                                                // no end
           whole().put('a', 9).put(end_code, 9).bytes,                   // too long
           piece().put(259, 9).put(260, 9).put(end_code, 9).bytes,       // too short
           CodeString().put('a', 9).put(258, 9).put(end_code, 9).bytes,  // no clear code in front
           CodeString().put(clear_code, 9).put(258, 9).put(end_code, 9).bytes,
           tail,
           more,
       }) {
    EXPECT_EQ(decompress(Codec::lzw, frame({hostile}), decoded).error().code, ErrorCode::corrupt)
        << to_hex(hostile);
  }
}

TEST(Lzw, refuses_more_strings_than_there_are_codes) {
  // One code a byte, up to as many as there may be since the clear code, and one more.
  for (const unsigned codes : {3836u, 3837u, 3838u}) {
    CodeString piece;
    piece.put(clear_code, 9);
    Bytes expected;
    for (unsigned i = 0; i < codes; ++i) {
      const unsigned code = i % 3 == 0 ? 'x' : i % 3 == 1 ? 'y' : 'z';
      piece.put(code, std::min(12u, static_cast<unsigned>(std::bit_width(258 + i))));
      expected.push_back(static_cast<Byte>(code));
    }
    piece.put(clear_code, 12);
    // Then a run that makes the whole smaller than its plain bytes.
    unsigned made = 258;
    expected.push_back('a');
    piece.put('a', 9);
    for (unsigned size = 2; size < 80; ++size, ++made) {
      piece.put(made, 9);
      expected.insert(expected.end(), size, 'a');
    }
    piece.put(end_code, 9);
    Bytes decoded(expected.size());
    const bool accepted = decompress(Codec::lzw, frame({piece.bytes}), decoded).has_value();
    EXPECT_EQ(accepted, codes < 3838) << codes;
    EXPECT_EQ(decoded == expected, accepted);
  }
}

// Codes at random, what they stand for, and whether they keep the rules; at most a piece.
struct RandomCodes {
  CodeString codes;
  Bytes plain;
  bool valid = true;
};

RandomCodes make_codes(TestRandom& random) {
  RandomCodes made;
  made.codes.put(clear_code, 9);
  const std::size_t size = 400 + random.below(piece_size_bytes - 400);
  const std::size_t alphabet = 1 + random.below(256);
  const std::size_t literals = 1 + random.below(9);  // of ten codes
  const std::size_t clear_every = 20 + random.below(4000);
  const bool may_be_wrong = random.below(2) == 0;
  std::vector<Bytes> strings;
  Bytes last;
  unsigned codes = 0;  // since the clear code
  while (made.plain.size() < size && made.valid) {
    const auto width = static_cast<unsigned>(std::bit_width(258 + codes));
    const unsigned making = 257 + codes;
    if (codes == 3836 || random.below(clear_every) == 0) {
      made.codes.put(clear_code, width);
      strings.clear();
      codes = 0;
      continue;
    }
    auto code = static_cast<unsigned>(random.below(alphabet));
    if (may_be_wrong && random.below(1000) == 0) {
      code = making + 1 + static_cast<unsigned>(random.below((1u << width) - making - 1));
      made.valid = false;
    } else if (codes > 0 && random.below(10) >= literals) {
      // Any string, or one of the last few: that which is just being made among them.
      const std::size_t back = random.below(random.below(2) == 0 ? codes : std::min(codes, 3u));
      code = making - static_cast<unsigned>(back);
    }
    if (codes > 0) strings.push_back(last);
    Bytes string = {static_cast<Byte>(code)};
    if (code >= 258 && made.valid) {
      string = strings[code - 258];
      if (code == making) string.push_back(string.front());
    }
    if (made.plain.size() + string.size() > piece_size_bytes) break;
    if (codes > 0) strings.back().push_back(string.front());
    made.codes.put(code, width);
    made.plain.insert(made.plain.end(), string.begin(), string.end());
    last = std::move(string);
    ++codes;
  }
  made.codes.put(end_code, static_cast<unsigned>(std::bit_width(258 + codes)));
  return made;
}

TEST(Lzw, takes_random_codes_for_what_they_spell_and_refuses_wrong_ones) {
  TestRandom random;
  int read = 0;
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const RandomCodes made = make_codes(random);
    const Bytes stream = frame({made.codes.bytes});
    std::size_t size = made.plain.size();
    if (random.below(4) == 0) size += random.below(40) - 20;
    if (size > piece_size_bytes || stream.size() - 4 >= size) continue;
    const bool expected = made.valid && size == made.plain.size();
    Bytes decoded(size);
    ASSERT_EQ(decompress(Codec::lzw, stream, decoded).has_value(), expected) << "round " << round;
    if (expected) {
      ASSERT_TRUE(decoded == made.plain) << "round " << round;
    }
    ++(expected ? read : refused);
  }
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 300);
}

TEST(LzwOracle, libtiff_reads_what_we_write) {
  TestRandom random;
  int judged = 0;
  for (int round = 0; round < 100; ++round) {
    const Bytes plain = make_uneven(2000 + random.below(sub_block_size_bytes - 2000), random);
    const Bytes stream = compressed(Codec::lzw, plain);
    if (stream.size() > plain.size()) continue;  // stored
    ++judged;
    const std::vector<Bytes> pieces = pieces_of(stream, plain.size(), piece_size_bytes);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t start = i * piece_size_bytes;
      const std::size_t size = std::min(piece_size_bytes, plain.size() - start);
      const Bytes decoded = decode_tiff_strip(TiffScheme::lzw, pieces[i], size);
      ASSERT_EQ(decoded.size(), size);
      ASSERT_TRUE(std::equal(decoded.begin(), decoded.end(), plain.begin() + start));
    }
  }
  EXPECT_GT(judged, 20);
}

TEST(LzwOracle, we_read_what_libtiff_writes_and_are_as_small) {
  TestRandom random;
  std::size_t our_size = 0;
  std::size_t their_size = 0;
  for (int round = 0; round < 100; ++round) {
    const Bytes plain = make_uneven(2000 + random.below(sub_block_size_bytes - 2000), random);
    std::vector<Bytes> pieces;
    for (std::size_t start = 0; start < plain.size(); start += piece_size_bytes) {
      const std::size_t size = std::min(piece_size_bytes, plain.size() - start);
      pieces.push_back(encode_tiff_strip(TiffScheme::lzw, ByteView(plain).subspan(start, size)));
    }
    const Bytes stream = frame(pieces);
    if (stream.size() >= plain.size()) continue;
    Bytes decoded(plain.size());
    ASSERT_TRUE(decompress(Codec::lzw, stream, decoded).has_value());
    ASSERT_TRUE(decoded == plain);
    their_size += stream.size();
    our_size += compressed(Codec::lzw, plain).size();
  }
  EXPECT_GT(their_size, 0u);
  EXPECT_LE(our_size, their_size + their_size / 50);
}

}  // namespace
}  // namespace nacre::engine
