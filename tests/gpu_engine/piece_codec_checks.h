// SPDX-License-Identifier: Apache-2.0
// What must hold of a device's codec whose encoder gives the CPU's very bytes and whose decoder
// takes what the CPU's takes. Encode and Decode: run(std::vector<Piece>&), on a device or emulated.
#pragma once

#include "gpu_engine/codec/sample.h"
#include "tests/gpu_engine/piece_run.h"

namespace nacre::engine::cuda {

// Expects the CPU's code. If the CPU did not try, because a sample looked random, any code that the
// CPU can decode is right.
inline void expect_code(Codec codec, const Piece& piece) {
  const Bytes expected = coded_by_cpu(codec, piece.in);
  const Bytes coded(piece.out.begin(), piece.out.begin() + piece.result);
  if (expected.empty() && piece.result != 0) {
    ASSERT_FALSE(looks_compressible(piece.in));
    ASSERT_TRUE(decoded_by_cpu(codec, coded, piece.in.size()) == piece.in);
  } else if (expected.size() <= piece.out_size) {
    ASSERT_TRUE(coded == expected) << coded.size() << " bytes, not " << expected.size();
  } else {
    ASSERT_EQ(piece.result, 0u);
  }
}

template <typename Encode>
void expect_the_cpus_code(Codec codec, const std::vector<Bytes>& plains, Encode encode) {
  std::vector<Piece> pieces;
  for (const Bytes& plain : plains)
    pieces.push_back({.in = plain, .out_size = plain.size()});
  encode(pieces);
  std::size_t coded = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ASSERT_LE(pieces[i].result, plains[i].size());
    expect_code(codec, pieces[i]);
    if (testing::Test::HasFailure()) FAIL() << "piece " << i << " of " << plains[i].size();
    coded += pieces[i].result != 0;
  }
  EXPECT_GT(coded, plains.size() / 4);
}

// Room for less than the code: given up, or used.
template <typename Encode>
void expect_no_more_than_room(Codec codec, const std::vector<Bytes>& plains, Encode encode) {
  std::vector<Piece> pieces;
  for (const Bytes& plain : plains) {
    const std::size_t size = coded_by_cpu(codec, plain).size();
    for (const std::size_t room : {size + 1, size, size - std::min<std::size_t>(size, 1), size / 2,
                                   std::size_t{1}, std::size_t{0}})
      pieces.push_back({.in = plain, .out_size = room});
  }
  encode(pieces);
  for (const Piece& piece : pieces) {
    ASSERT_LE(piece.result, piece.out_size);
    expect_code(codec, piece);
    if (testing::Test::HasFailure()) FAIL() << piece.in.size() << " bytes";
  }
}

// Returns how many are refused.
template <typename Decode>
std::size_t expect_the_cpus_verdicts(Codec codec, std::vector<Piece> pieces, Decode decode) {
  decode(pieces);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const std::optional<Bytes> plain = decoded_by_cpu(codec, piece.in, piece.out_size);
    EXPECT_EQ(piece.result, plain ? 1u : 0u) << "piece " << i << " of " << piece.out_size;
    if (plain) {
      EXPECT_TRUE(piece.out == *plain) << "piece " << i << " of " << piece.out_size;
    }
    refused += !plain;
    if (testing::Test::HasFailure()) break;
  }
  return refused;
}

inline std::vector<Piece> coded_pieces(Codec codec, const std::vector<Bytes>& plains) {
  std::vector<Piece> pieces;
  for (const Bytes& plain : plains) {
    const Bytes coded = coded_by_cpu(codec, plain);
    if (!coded.empty()) pieces.push_back({.in = coded, .out_size = plain.size()});
  }
  return pieces;
}

// Codes with damage, of another size, and bytes that are none.
inline std::vector<Piece> hostile_pieces(Codec codec, const std::vector<Bytes>& plains,
                                         TestRandom& random) {
  std::vector<Piece> pieces;
  for (const Piece& piece : coded_pieces(codec, plains)) {
    Piece damaged = piece;
    mutate(damaged.in, random);
    pieces.push_back(damaged);
    Piece other_size = piece;
    other_size.out_size = std::min(
        sub_block_size_bytes + 0, static_cast<std::uint32_t>(piece.out_size + random.below(3)) - 1);
    pieces.push_back(other_size);
    if (random.below(4) != 0) continue;
    Piece noise = piece;
    noise.in = random.bytes(1 + random.below(piece.out_size));
    pieces.push_back(noise);
  }
  return pieces;
}

}  // namespace nacre::engine::cuda
