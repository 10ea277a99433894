// SPDX-License-Identifier: Apache-2.0
// The code of the lzw kernels, run on the host (emulated_block.h): it needs no device.
#include "tests/gpu_engine/emulated_block.h"

#include <iostream>

#include "gpu_engine/cuda/kernels/lzw_decoder.cuh"
#include "gpu_engine/cuda/kernels/lzw_encoder.cuh"
#include "tests/gpu_engine/piece_codec_checks.h"

namespace nacre::engine::cuda {
namespace {

// Each part by a warp; put together as the kernel's second step does.
void encode(std::vector<Piece>& pieces) {
  PieceArenas arenas(pieces);
  const std::vector<CodecTask> tasks = arenas.tasks(pieces, arenas.in.data(), arenas.out.data());
  std::vector<lzw::EncoderMemory> memory(1);
  std::vector<std::uint32_t> results(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const CodecTask& task = tasks[i];
    Bytes table, codes;
    for (std::uint32_t part = 0; part < lzw::count_parts(task.in_size); ++part) {
      std::vector<std::uint32_t> coded(lzw::part_room / sizeof(std::uint32_t));
      std::uint32_t size = 0;
      emulated::Block::run(lane_count, [&] {
        size = lzw::encode_part(memory[0], task.in + part * lzw::part_size_max,
                                lzw::part_size(task.in_size, part), coded.data());
      });
      ASSERT_LE(size, lzw::part_room);
      table.push_back(static_cast<Byte>(size));
      table.push_back(static_cast<Byte>(size >> 8));
      const auto* const bytes = reinterpret_cast<const Byte*>(coded.data());
      codes.insert(codes.end(), bytes, bytes + size);
    }
    table.insert(table.end(), codes.begin(), codes.end());
    if (table.size() >= task.in_size || table.size() > task.out_size) continue;
    std::copy(table.begin(), table.end(), task.out);
    results[i] = static_cast<std::uint32_t>(table.size());
  }
  arenas.take(pieces, results);
}

void decode(std::vector<Piece>& pieces) {
  PieceArenas arenas(pieces);
  const std::vector<CodecTask> tasks = arenas.tasks(pieces, arenas.in.data(), arenas.out.data());
  std::vector<lzw::DecoderMemory> memory(1);
  std::vector<std::uint32_t> results(pieces.size(), 1);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    for (std::uint32_t part = 0; part < lzw::part_count_max; ++part) {
      emulated::Block::run(lane_count, [&] {
        if (!lzw::decode_part(tasks[i], part, memory[0])) results[i] = 0;
      });
    }
  }
  arenas.take(pieces, results);
}

std::vector<Bytes> plains(TestRandom& random, int count) {
  std::vector<Bytes> made;
  for (int i = 0; i < count / emulated::part_of_tests; ++i) {
    const std::size_t size = random_piece_size(random, lzw::part_size_max, 100);
    made.push_back(i % 3 == 0 ? make_data(DataKind::text, size, random)
                              : make_stretches(size, random));
  }
  return made;
}

// Noise, whose strings run out, before what makes the whole smaller than its plain bytes.
Bytes noise_first(std::size_t noise_size, TestRandom& random) {
  Bytes plain = random.bytes(noise_size);
  plain.resize(65536, 'x');
  return plain;
}

class LzwKernels : public testing::Test {
 protected:
  void SetUp() override {
    if (emulated::runs_here) return;
    std::cout << "skipped: emulated kernels: ThreadSanitizer cannot follow their stacks\n";
    GTEST_SKIP() << "ThreadSanitizer";
  }
};

TEST_F(LzwKernels, encode_as_the_cpu_does) {
  TestRandom random;
  std::vector<Bytes> all = plains(random, 500);
  for (const std::size_t size : {3800, 3836, 3837, 3838, 3900, 7600, 7672, 7674, 7800, 8192, 9000})
    all.push_back(noise_first(size, random));
  for (std::size_t size = 1; size < 300; size += 3 * emulated::part_of_tests)
    all.emplace_back(size, Byte{7});
  // A part that ends about where its strings run out, behind others.
  for (const std::size_t strings : {3836, 7672}) {
    for (std::size_t size = strings - 2; size <= strings + 3; ++size) {
      all.emplace_back(3 * 8192, Byte{7});
      const Bytes noise = random.bytes(size);
      all.back().insert(all.back().end(), noise.begin(), noise.end());
    }
  }
  expect_the_cpus_code(Codec::lzw, all, encode);
}

TEST_F(LzwKernels, give_up_what_does_not_fit) {
  TestRandom random;
  expect_no_more_than_room(Codec::lzw, plains(random, 40), encode);
}

TEST_F(LzwKernels, decode_what_the_cpu_encodes) {
  TestRandom random;
  std::vector<Bytes> all = plains(random, 200);
  all.push_back(noise_first(8000, random));
  const std::vector<Piece> pieces = coded_pieces(Codec::lzw, all);
  ASSERT_GT(pieces.size(), 70u / emulated::part_of_tests);
  EXPECT_EQ(expect_the_cpus_verdicts(Codec::lzw, pieces, decode), 0u);
}

TEST_F(LzwKernels, judge_hostile_codes_as_the_cpu_does) {
  TestRandom random;
  const std::vector<Piece> pieces = hostile_pieces(Codec::lzw, plains(random, 300), random);
  EXPECT_GT(expect_the_cpus_verdicts(Codec::lzw, pieces, decode), 100u / emulated::part_of_tests);
}

}  // namespace
}  // namespace nacre::engine::cuda
