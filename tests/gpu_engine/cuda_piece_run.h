// SPDX-License-Identifier: Apache-2.0
// Pieces coded and decoded by launches on the device; what tests of such codecs share.
#pragma once

#include "tests/gpu_engine/corpus.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/piece_codec_checks.h"

namespace nacre::engine::cuda {

// Codes all pieces by one launch: launch(tasks, count, results).
template <typename Launch>
void run_on_device(std::vector<Piece>& pieces, Launch launch) {
  PieceArenas arenas(pieces);
  const DeviceArray<Byte> d_in(arenas.in);
  const DeviceArray<Byte> d_out(arenas.out);
  const DeviceArray<CodecTask> d_tasks(arenas.tasks(pieces, d_in.data(), d_out.data()));
  const DeviceArray<std::uint32_t> d_results(std::vector<std::uint32_t>(pieces.size(), 0xdeadbeef));
  ASSERT_CUDA(launch(d_tasks.data(), static_cast<std::uint32_t>(pieces.size()), d_results.data()));
  ASSERT_CUDA(cudaDeviceSynchronize());
  arenas.out = d_out.copy();
  arenas.take(pieces, d_results.copy());
}

template <typename WorkspaceSize, typename Encode>
void encode_on_device(std::vector<Piece>& pieces, WorkspaceSize workspace_size, Encode encode) {
  const DeviceArray<Byte> workspace(workspace_size(static_cast<std::uint32_t>(pieces.size())));
  run_on_device(pieces, [&](const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
    return encode(tasks, count, results, workspace.data(), nullptr, 0);
  });
}

template <typename WorkspaceSize, typename Decode>
void decode_on_device(std::vector<Piece>& pieces, WorkspaceSize workspace_size, Decode decode) {
  const DeviceArray<Byte> workspace(workspace_size(static_cast<std::uint32_t>(pieces.size())));
  run_on_device(pieces, [&](const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
    return decode(tasks, count, results, workspace.data(), nullptr);
  });
}

// Small sizes, and those about the ends of parts and of a piece, of all kinds of data.
inline std::vector<Bytes> pieces_at_every_edge(std::size_t part_size, TestRandom& random) {
  std::vector<Bytes> pieces;
  const auto add = [&](std::size_t size) {
    for (const DataKind kind : data_kinds)
      pieces.push_back(make_data(kind, size, random));
  };
  for (std::size_t size = 1; size <= 300; ++size)
    add(size);
  for (std::size_t end = part_size; end <= sub_block_size_bytes; end += part_size)
    for (std::size_t size = end - 2; size <= end + 2 && size <= sub_block_size_bytes; ++size)
      add(size);
  return pieces;
}

template <typename Encode, typename Decode>
void expect_corpus_both_ways(Codec codec, Encode encode, Decode decode) {
  std::vector<Bytes> chunks;
  for (const CorpusFile& file : read_corpus(8 * test_part(), "device codecs"))
    for (std::size_t at = 0; at < file.bytes.size(); at += sub_block_size_bytes)
      chunks.emplace_back(
          file.bytes.begin() + at,
          file.bytes.begin() + std::min<std::size_t>(at + sub_block_size_bytes, file.bytes.size()));
  if (chunks.empty()) GTEST_SKIP() << "no corpus";
  expect_the_cpus_code(codec, chunks, encode);
  EXPECT_EQ(expect_the_cpus_verdicts(codec, coded_pieces(codec, chunks), decode), 0u);
}

}  // namespace nacre::engine::cuda
