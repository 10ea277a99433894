// SPDX-License-Identifier: Apache-2.0
// TIFF LZW on the device against the CPU's codec, in both directions and to the byte.
#include "gpu_engine/cuda/kernels/codecs.h"
#include "tests/gpu_engine/cuda_piece_run.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::size_t lzw_part_size = 8192;

void encode_lzw(std::vector<Piece>& pieces) {
  encode_on_device(pieces, lzw_encode_workspace_size, lzw_encode);
}
void decode_lzw(std::vector<Piece>& pieces) {
  decode_on_device(pieces, lzw_decode_workspace_size, lzw_decode);
}

class CudaLzw : public CudaTest {
 protected:
  std::vector<Bytes> plains(std::size_t count) {
    std::vector<Bytes> made = pieces_at_every_edge(lzw_part_size, random_);
    for (std::size_t i = 0; i < count / test_part(); ++i) {
      const std::size_t size = random_piece_size(random_, lzw_part_size, 10);
      made.push_back(i % 3 == 0 ? make_data(DataKind::text, size, random_)
                                : make_stretches(size, random_));
    }
    return made;
  }
  // Parts whose strings run out once or twice, and bytes that make the whole small enough.
  std::vector<Bytes> plains_with_clear_codes() {
    std::vector<Bytes> made;
    for (std::size_t size = 3700; size < 9000; size += 37) {
      made.push_back(random_.bytes(size));
      made.back().resize(65536, 'x');
      made.push_back(make_data(DataKind::text, 60000, random_));
      for (std::size_t i = 0; i < size; ++i)
        made.back()[20000 + i] = static_cast<Byte>(random_.below(1 + size % 200));
    }
    return made;
  }

  TestRandom random_;
};

// More pieces than are coded at once.
TEST_F(CudaLzw, encodes_as_the_cpu_does) {
  expect_the_cpus_code(Codec::lzw, plains(5000), encode_lzw);
  expect_the_cpus_code(Codec::lzw, plains_with_clear_codes(), encode_lzw);
}

TEST_F(CudaLzw, gives_up_what_does_not_fit) {
  expect_no_more_than_room(Codec::lzw, plains(300), encode_lzw);
}

TEST_F(CudaLzw, decodes_what_the_cpu_encodes) {
  const std::vector<Piece> pieces = coded_pieces(Codec::lzw, plains(5000));
  EXPECT_EQ(expect_the_cpus_verdicts(Codec::lzw, pieces, decode_lzw), 0u);
  const std::vector<Piece> cleared = coded_pieces(Codec::lzw, plains_with_clear_codes());
  ASSERT_GT(cleared.size(), 100u);
  EXPECT_EQ(expect_the_cpus_verdicts(Codec::lzw, cleared, decode_lzw), 0u);
}

TEST_F(CudaLzw, judges_hostile_codes_as_the_cpu_does) {
  const std::vector<Piece> pieces = hostile_pieces(Codec::lzw, plains(15000), random_);
  EXPECT_GT(expect_the_cpus_verdicts(Codec::lzw, pieces, decode_lzw), 2000 / test_part());
}

// One section for each byte. No encoder does that, but the format allows it.
TEST_F(CudaLzw, decodes_a_clear_code_before_every_byte) {
  std::vector<Piece> pieces;
  for (const std::size_t pairs : {1, 2, 100, 3000}) {
    Bytes part;
    std::size_t bits = 0;
    const auto put = [&](unsigned code) {
      for (unsigned i = 9; i-- > 0; ++bits) {
        if (bits % 8 == 0) part.push_back(0);
        part.back() = static_cast<Byte>(part.back() | (code >> i & 1) << (7 - bits % 8));
      }
    };
    for (std::size_t i = 0; i < pairs; ++i) {
      put(256);
      put(static_cast<unsigned>(i % 256));
    }
    // Then a run, so that the whole is smaller than its plain bytes.
    put(256);
    put('a');
    std::size_t size = pairs + 1;
    for (unsigned length = 2; length < 95; ++length) {
      put(256 + length);
      size += length;
    }
    put(257);
    Piece piece = {.in = Bytes(2), .out_size = size};
    store_le(piece.in.data(), static_cast<std::uint16_t>(part.size()));
    piece.in.insert(piece.in.end(), part.begin(), part.end());
    pieces.push_back(piece);
    --piece.out_size;
    pieces.push_back(piece);
  }
  EXPECT_EQ(expect_the_cpus_verdicts(Codec::lzw, pieces, decode_lzw), 4u);
}

TEST_F(CudaLzw, codes_the_corpus_as_the_cpu_does) {
  expect_corpus_both_ways(Codec::lzw, encode_lzw, decode_lzw);
}

TEST_F(CudaLzw, takes_no_tasks_at_all) {
  std::vector<Piece> none;
  encode_lzw(none);
  decode_lzw(none);
}

}  // namespace
}  // namespace nacre::engine::cuda
