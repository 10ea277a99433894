// SPDX-License-Identifier: Apache-2.0
// PackBits on the device against the CPU's codec, in both directions and to the byte.
#include "gpu_engine/cuda/kernels/codecs.h"
#include "tests/gpu_engine/corpus.h"
#include "tests/gpu_engine/cuda_piece_run.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/piece_codec_checks.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::size_t rle_part_size = 4096;

void encode_rle(std::vector<Piece>& pieces) {
  encode_on_device(pieces, rle_encode_workspace_size, rle_encode);
}
void decode_rle(std::vector<Piece>& pieces) {
  decode_on_device(pieces, rle_decode_workspace_size, rle_decode);
}

class CudaRle : public CudaTest {
 protected:
  std::vector<Bytes> plains(std::size_t count) {
    std::vector<Bytes> made = pieces_at_every_edge(rle_part_size, random_);
    for (std::size_t i = 0; i < count / test_part(); ++i)
      made.push_back(make_stretches(random_piece_size(random_, rle_part_size, 10), random_));
    return made;
  }

  TestRandom random_;
};

TEST_F(CudaRle, encodes_as_the_cpu_does) {
  expect_the_cpus_code(Codec::rle, plains(10000), encode_rle);
}

TEST_F(CudaRle, gives_up_what_does_not_fit) {
  expect_no_more_than_room(Codec::rle, plains(500), encode_rle);
}

TEST_F(CudaRle, decodes_what_the_cpu_encodes) {
  const std::vector<Piece> pieces = coded_pieces(Codec::rle, plains(10000));
  EXPECT_EQ(expect_the_cpus_verdicts(Codec::rle, pieces, decode_rle), 0u);
}

TEST_F(CudaRle, judges_hostile_codes_as_the_cpu_does) {
  const std::vector<Piece> pieces = hostile_pieces(Codec::rle, plains(20000), random_);
  EXPECT_GT(expect_the_cpus_verdicts(Codec::rle, pieces, decode_rle), 2000 / test_part());
}

// Longer than encoders make them: each group behind headers that mean nothing.
TEST_F(CudaRle, decodes_parts_full_of_headers_that_mean_nothing) {
  std::vector<Piece> pieces;
  for (const std::size_t empty_headers : {std::size_t{1}, std::size_t{4100}, std::size_t{60000}}) {
    Piece piece = {.in = Bytes(32), .out_size = 65536};
    for (std::size_t part = 0; part < 16; ++part) {
      const std::size_t begin = piece.in.size();
      if (part == 7) piece.in.insert(piece.in.end(), empty_headers, 128);
      for (std::size_t group = 0; group < 32; ++group)
        piece.in.insert(piece.in.end(), {129, static_cast<Byte>(part + group)});
      store_le(piece.in.data() + 2 * part, static_cast<std::uint16_t>(piece.in.size() - begin));
    }
    pieces.push_back(piece);
    ++piece.in[14];  // the size of one part
    pieces.push_back(piece);
  }
  EXPECT_EQ(expect_the_cpus_verdicts(Codec::rle, pieces, decode_rle), 3u);
}

TEST_F(CudaRle, codes_the_corpus_as_the_cpu_does) {
  expect_corpus_both_ways(Codec::rle, encode_rle, decode_rle);
}

TEST_F(CudaRle, takes_no_tasks_at_all) {
  std::vector<Piece> none;
  encode_rle(none);
  decode_rle(none);
}

}  // namespace
}  // namespace nacre::engine::cuda
