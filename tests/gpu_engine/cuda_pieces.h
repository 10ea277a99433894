// SPDX-License-Identifier: Apache-2.0
// Pieces for a codec's kernels: one launch over many of them, at odd addresses, between bands of
// bytes that must come back as they were.
#pragma once

#include "gpu_engine/cuda/kernels/tasks.h"
#include "tests/gpu_engine/cuda_test_device.h"

namespace nacre::engine::cuda {

inline constexpr Byte untouched = 0xa5;

struct DevicePiece {
  Bytes in;
  std::size_t out_size;
  std::uint32_t result = 0;
  Bytes out;
};

// The places of many pieces in an arena, one after the other. Before each there are 32 bytes of a
// band, and up to 15 bytes for an odd address.
struct Places {
  std::vector<std::size_t> at;
  std::size_t size = 32;

  void add(std::size_t piece_size) {
    at.push_back(size + (at.size() * 7) % 16);
    size = at.back() + piece_size + 32;
  }
};

// Runs one launch over the pieces; launch(tasks, count, results).
template <typename Launch>
void run_pieces(std::vector<DevicePiece>& pieces, Launch launch) {
  Places ins, outs;
  for (const DevicePiece& piece : pieces) {
    ins.add(piece.in.size());
    outs.add(piece.out_size);
  }
  Bytes in(ins.size, 0xff);  // what a decoder that reads too far takes for more of everything
  for (std::size_t i = 0; i < pieces.size(); ++i)
    std::copy(pieces[i].in.begin(), pieces[i].in.end(), in.begin() + ins.at[i]);
  Bytes out(outs.size, untouched);
  const DeviceArray<Byte> d_in(in);
  const DeviceArray<Byte> d_out(out);
  std::vector<CodecTask> tasks;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    tasks.push_back({d_in.data() + ins.at[i], d_out.data() + outs.at[i],
                     static_cast<std::uint32_t>(pieces[i].in.size()),
                     static_cast<std::uint32_t>(pieces[i].out_size)});
  const DeviceArray<CodecTask> d_tasks(tasks);
  const DeviceArray<std::uint32_t> d_results(std::vector<std::uint32_t>(pieces.size(), 0xdeadbeef));

  ASSERT_CUDA(launch(d_tasks.data(), static_cast<std::uint32_t>(tasks.size()), d_results.data()));
  ASSERT_CUDA(cudaDeviceSynchronize());

  const std::vector<std::uint32_t> results = d_results.copy();
  out = d_out.copy();
  std::size_t band = 0;
  const auto expect_untouched = [&](std::size_t to) {
    EXPECT_EQ(std::count(out.begin() + band, out.begin() + to, untouched),
              static_cast<std::ptrdiff_t>(to - band))
        << "bytes outside the output were written";
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    expect_untouched(outs.at[i]);
    band = outs.at[i] + pieces[i].out_size;
    pieces[i].result = results[i];
    pieces[i].out.assign(out.begin() + outs.at[i], out.begin() + band);
  }
  expect_untouched(out.size());
}

// Runs run_lot over at_once of the pieces at a time.
template <typename Run>
void in_lots(std::vector<DevicePiece>& pieces, std::size_t at_once, Run run_lot) {
  for (std::size_t first = 0; first < pieces.size(); first += at_once) {
    const auto begin = pieces.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(at_once, pieces.size() - first));
    std::vector<DevicePiece> lot(begin, end);
    run_lot(lot);
    std::move(lot.begin(), lot.end(), begin);
  }
}

}  // namespace nacre::engine::cuda
