// SPDX-License-Identifier: Apache-2.0
// Codec lzw: its own edges, and libtiff as the judge of its pieces in both directions.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/tiff_strip.h"

namespace nacre::engine {
namespace {

constexpr std::size_t piece_size_bytes = 8192;

Bytes compressed(ByteView plain) {
  Bytes stream(stream_size_bound(Codec::lzw, plain.size()));
  stream.resize(compress(Codec::lzw, 0, plain, stream).value());
  return stream;
}

// A stream of one coded sub-block out of LZW pieces.
Bytes frame(const std::vector<Bytes>& pieces) {
  Bytes stream(4 + 2 * pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    store_le(stream.data() + 4 + 2 * i, static_cast<std::uint16_t>(pieces[i].size()));
    stream.insert(stream.end(), pieces[i].begin(), pieces[i].end());
  }
  store_le(stream.data(), static_cast<std::uint32_t>(stream.size() - 4));
  return stream;
}

// The pieces of a stream of one coded sub-block.
std::vector<Bytes> pieces_of(ByteView stream, std::size_t plain_size) {
  const std::size_t count = (plain_size + piece_size_bytes - 1) / piece_size_bytes;
  EXPECT_EQ(load_le<std::uint32_t>(stream.data()), stream.size() - 4);
  std::vector<Bytes> pieces;
  ByteView rest = stream.subspan(4 + 2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const ByteView piece = rest.first(load_le<std::uint16_t>(stream.data() + 4 + 2 * i));
    pieces.emplace_back(piece.begin(), piece.end());
    rest = rest.subspan(piece.size());
  }
  EXPECT_TRUE(rest.empty());
  return pieces;
}

// Bytes of a piece that compress so badly that its strings run out, beside others that do well.
// All together are smaller when coded.
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
    const Bytes stream = compressed(plain);
    Bytes decoded(plain.size(), 0xee);
    ASSERT_TRUE(decompress(Codec::lzw, stream, decoded).has_value());
    ASSERT_TRUE(decoded == plain) << "size " << plain.size();
  }
}

TEST(Lzw, compresses_text) {
  TestRandom random;
  const Bytes text = make_data(DataKind::text, 200000, random);
  EXPECT_LT(compressed(text).size(), text.size() / 2);
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

TEST(LzwOracle, libtiff_reads_what_we_write) {
  TestRandom random;
  int judged = 0;
  for (int round = 0; round < 100; ++round) {
    const Bytes plain = make_uneven(2000 + random.below(sub_block_size_bytes - 2000), random);
    const Bytes stream = compressed(plain);
    if (stream.size() > plain.size()) continue;  // stored
    ++judged;
    const std::vector<Bytes> pieces = pieces_of(stream, plain.size());
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
    our_size += compressed(plain).size();
  }
  EXPECT_GT(their_size, 0u);
  EXPECT_LE(our_size, their_size + their_size / 50);
}

}  // namespace
}  // namespace nacre::engine
