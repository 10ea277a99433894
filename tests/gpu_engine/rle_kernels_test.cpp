// SPDX-License-Identifier: Apache-2.0
// The code of the rle kernels, run on the host (emulated_block.h): it needs no device.
#include "tests/gpu_engine/emulated_block.h"

#include <iostream>

#include "gpu_engine/cuda/kernels/rle_decoder.cuh"
#include "gpu_engine/cuda/kernels/rle_encoder.cuh"
#include "tests/gpu_engine/piece_codec_checks.h"

namespace nacre::engine::cuda {
namespace {

void encode(std::vector<Piece>& pieces) {
  PieceArenas arenas(pieces);
  const std::vector<CodecTask> tasks = arenas.tasks(pieces, arenas.in.data(), arenas.out.data());
  std::vector<rle::EncoderMemory> memory(rle::part_count_max);
  std::vector<std::uint32_t> results(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::vector<std::uint32_t> sizes(rle::part_count_max);
    const std::uint32_t warp_count = std::max(rle::count_parts(tasks[i].in_size), 1u);
    emulated::Block::run(warp_count * lane_count, [&] {
      const std::uint32_t size = rle::encode_piece(tasks[i], memory.data(), sizes.data());
      if (threadIdx.x == 0) results[i] = size;
    });
  }
  arenas.take(pieces, results);
}

// Encodes as on devices whose blocks have less shared memory.
void encode_in_turns(std::vector<Piece>& pieces) {
  PieceArenas arenas(pieces);
  const std::vector<CodecTask> tasks = arenas.tasks(pieces, arenas.in.data(), arenas.out.data());
  std::vector<std::uint32_t> results(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto warp_count = static_cast<std::uint32_t>(1 + i % 8);
    std::vector<rle::EncoderMemory> memory(warp_count);
    std::vector<std::uint32_t> sizes(rle::part_count_max);
    emulated::Block::run(warp_count * lane_count, [&] {
      const std::uint32_t size =
          rle::encode_piece_in_turns(tasks[i], memory.data(), warp_count, sizes.data());
      if (threadIdx.x == 0) results[i] = size;
    });
  }
  arenas.take(pieces, results);
}

void decode(std::vector<Piece>& pieces) {
  constexpr std::uint32_t warp_count = 3;
  PieceArenas arenas(pieces);
  const std::vector<CodecTask> tasks = arenas.tasks(pieces, arenas.in.data(), arenas.out.data());
  std::vector<rle::DecoderMemory> memory(warp_count);
  std::vector<std::uint32_t> results(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    emulated::Block::run(warp_count * lane_count, [&] {
      const bool valid = rle::decode_piece(tasks[i], memory.data(), warp_count);
      results[i] = __syncthreads_and(valid);
    });
  }
  arenas.take(pieces, results);
}

std::vector<Bytes> plains(TestRandom& random, int count) {
  std::vector<Bytes> made;
  for (int i = 0; i < count / emulated::part_of_tests; ++i)
    made.push_back(make_stretches(random_piece_size(random, rle::part_size_max, 50), random));
  return made;
}

class RleKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (emulated::runs_here) return;
    std::cout << "skipped: emulated kernels: ThreadSanitizer cannot follow their stacks\n";
    GTEST_SKIP() << "ThreadSanitizer";
  }
};

TEST_F(RleKernels, encode_as_the_cpu_does) {
  TestRandom random;
  std::vector<Bytes> all = plains(random, 1200);
  // Runs and literals of each length about a group's, in front of each other.
  for (std::size_t length = 1; length < 300; length += emulated::part_of_tests) {
    Bytes plain(length, 'a');
    for (std::size_t i = 0; i < length; ++i)
      plain.push_back(static_cast<Byte>(i));
    plain.insert(plain.end(), 3, 'b');
    plain.insert(plain.end(), length, 'c');
    plain.insert(plain.end(), 2, 'd');
    plain.insert(plain.end(), 130, 'e');
    all.push_back(plain);
  }
  expect_the_cpus_code(Codec::rle, all, encode);
  expect_the_cpus_code(Codec::rle, all, encode_in_turns);
}

TEST_F(RleKernels, give_up_what_does_not_fit) {
  TestRandom random;
  expect_no_more_than_room(Codec::rle, plains(random, 60), encode);
  expect_no_more_than_room(Codec::rle, plains(random, 60), encode_in_turns);
}

TEST_F(RleKernels, decode_what_the_cpu_encodes) {
  TestRandom random;
  const std::vector<Piece> pieces = coded_pieces(Codec::rle, plains(random, 1200));
  ASSERT_GT(pieces.size(), 300u / emulated::part_of_tests);
  EXPECT_EQ(expect_the_cpus_verdicts(Codec::rle, pieces, decode), 0u);
}

TEST_F(RleKernels, judge_hostile_codes_as_the_cpu_does) {
  TestRandom random;
  const std::vector<Piece> pieces = hostile_pieces(Codec::rle, plains(random, 1500), random);
  EXPECT_GT(expect_the_cpus_verdicts(Codec::rle, pieces, decode), 300u / emulated::part_of_tests);
}

}  // namespace
}  // namespace nacre::engine::cuda
