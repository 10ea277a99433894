// SPDX-License-Identifier: Apache-2.0
// Codec rle: its own edges, and libtiff as the judge of its PackBits in both directions.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "tests/gpu_engine/framed_pieces.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/tiff_strip.h"

namespace nacre::engine {
namespace {

constexpr std::size_t rle_piece_size_bytes = 4096;

// Stretches of all lengths of equal bytes, pairs and noise, so that every kind of group meets every
// other one and every edge of a piece.
Bytes make_runs(std::size_t size, TestRandom& random) {
  Bytes made;
  while (made.size() < size) {
    const std::size_t length = 1 + random.below(1u << random.below(9));
    if (random.below(3) == 0) {
      const Bytes noise = random.bytes(length);
      made.insert(made.end(), noise.begin(), noise.end());
    } else {
      made.insert(made.end(), length, static_cast<Byte>(random.below(3)));
    }
  }
  made.resize(size);
  return made;
}

TEST(Rle, gives_back_runs_of_every_length_beside_each_other) {
  TestRandom random;
  for (int round = 0; round < 2000; ++round) {
    const Bytes plain = make_runs(1 + random.below(round % 20 == 0 ? 200000 : 9000), random);
    const Bytes stream = compressed(Codec::rle, plain);
    Bytes decoded(plain.size(), 0xee);
    ASSERT_TRUE(decompress(Codec::rle, stream, decoded).has_value());
    ASSERT_TRUE(decoded == plain) << "size " << plain.size();
  }
}

TEST(Rle, reads_the_example_of_the_specification) {
  const Bytes packed = from_hex("feaa0280002afdaa0380002a22f7aa");
  Bytes decoded(24);
  ASSERT_TRUE(decompress(Codec::rle, frame({packed}), decoded).has_value());
  EXPECT_EQ(to_hex(decoded), "aaaaaa80002aaaaaaaaa80002a22aaaaaaaaaaaaaaaaaaaa");
}

TEST(Rle, skips_the_header_that_means_nothing) {
  Bytes decoded(24);
  ASSERT_TRUE(decompress(Codec::rle, frame({{128, 233, 'x', 128}}), decoded).has_value());
  EXPECT_TRUE(decoded == Bytes(24, 'x'));
}

TEST(Rle, costs_two_bytes_for_each_128_equal_ones) {
  const Bytes plain(sub_block_size_bytes, 7);
  EXPECT_EQ(compressed(Codec::rle, plain).size(), 4u + 16 * 2 + 16 * 32 * 2);
}

TEST(Rle, refuses_pieces_that_do_not_fill_their_plain_bytes) {
  const Bytes whole = {129, 'a'};  // 128 bytes
  const std::vector<Bytes> full(32, whole);
  Bytes piece;
  for (const Bytes& part : full)
    piece.insert(piece.end(), part.begin(), part.end());
  const Bytes rest = {255, 'b'};  // 2 bytes
  Bytes decoded(rle_piece_size_bytes + 2);
  ASSERT_TRUE(decompress(Codec::rle, frame({piece, rest}), decoded).has_value());

  // The same bytes, cut elsewhere: the first piece gives 4098, 3968, or ends within a group.
  Bytes longer = piece;
  longer.insert(longer.end(), rest.begin(), rest.end());
  const Bytes shorter(piece.begin(), piece.end() - 2);
  const Bytes torn(piece.begin(), piece.end() - 1);
  for (const std::vector<Bytes>& pieces : std::vector<std::vector<Bytes>>{
           {longer, {}}, {shorter, {129, 'a', 255, 'b'}}, {torn, {'a', 255, 'b'}}, {piece, {}}}) {
    EXPECT_EQ(decompress(Codec::rle, frame(pieces), decoded).error().code, ErrorCode::corrupt);
  }

  // Sizes in the table that are more or less than there is.
  for (const int change : {-2, -1, 1, 2, 1000}) {
    Bytes stream = frame({piece, rest});
    store_le(stream.data() + 6, static_cast<std::uint16_t>(2 + change));
    EXPECT_EQ(decompress(Codec::rle, stream, decoded).error().code, ErrorCode::corrupt);
  }
}

TEST(RleOracle, libtiff_reads_what_we_write) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    Bytes plain = make_runs(64 + random.below(sub_block_size_bytes - 64), random);
    std::fill_n(plain.begin(), plain.size() / 2, Byte{0});  // so that it is smaller when coded
    const std::vector<Bytes> pieces =
        pieces_of(compressed(Codec::rle, plain), plain.size(), rle_piece_size_bytes);
    Bytes strip;  // PackBits has no state: all pieces together are a strip too
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t start = i * rle_piece_size_bytes;
      const std::size_t size = std::min(rle_piece_size_bytes, plain.size() - start);
      const Bytes decoded = decode_tiff_strip(TiffScheme::packbits, pieces[i], size);
      ASSERT_EQ(decoded.size(), size);
      ASSERT_TRUE(std::equal(decoded.begin(), decoded.end(), plain.begin() + start));
      strip.insert(strip.end(), pieces[i].begin(), pieces[i].end());
    }
    ASSERT_TRUE(decode_tiff_strip(TiffScheme::packbits, strip, plain.size()) == plain);
  }
}

TEST(RleOracle, we_read_what_libtiff_writes_and_are_as_small) {
  TestRandom random;
  std::size_t our_size = 0;
  std::size_t their_size = 0;
  for (int round = 0; round < 200; ++round) {
    Bytes plain = make_runs(64 + random.below(sub_block_size_bytes - 64), random);
    std::fill_n(plain.begin(), plain.size() / 2, Byte{0});
    std::vector<Bytes> pieces;
    for (std::size_t start = 0; start < plain.size(); start += rle_piece_size_bytes) {
      const std::size_t size = std::min(rle_piece_size_bytes, plain.size() - start);
      pieces.push_back(
          encode_tiff_strip(TiffScheme::packbits, ByteView(plain).subspan(start, size)));
    }
    const Bytes stream = frame(pieces);
    Bytes decoded(plain.size());
    ASSERT_TRUE(decompress(Codec::rle, stream, decoded).has_value());
    ASSERT_TRUE(decoded == plain);
    their_size += stream.size();
    our_size += compressed(Codec::rle, plain).size();
  }
  EXPECT_LE(our_size, their_size + their_size / 100);
}

}  // namespace
}  // namespace nacre::engine
