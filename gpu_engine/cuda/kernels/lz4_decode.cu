// SPDX-License-Identifier: Apache-2.0
// Decodes each LZ4 block with two warps: one finds the sequences, the other writes the sequences of
// the window before. From 3,000 pieces on one warp per piece does both.
//
// lz4_decoder.cuh derives what a warp does. By count a byte takes 3.3 instructions of a warp, which
// gives 315 GB/s if an H200 issues all that it can. Measured on an H200, 2026-11-21, 64 KiB pieces
// of Silesia that liblz4 compressed:
//
//   pieces               512   1,024   2,048   4,096
//   one warp, GB/s        29      53      96     146
//   two warps, GB/s       42      76     121     141
#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/lz4_decoder.cuh"

namespace nacre::engine::cuda {
namespace lz4 {
namespace {

constexpr std::uint32_t coded_size_max = 1u << 20;  // far more than a piece's code can need

// A Step, handed from the parsing warp to the writing warp. Index window_sequences_max of the
// arrays is for the lanes that have no sequence.
struct Handover {
  bool last;  // there are no more steps
  Step::Kind kind;
  std::uint32_t to;
  std::uint32_t size;
  std::uint32_t begin[window_sequences_max + 1];
  std::uint32_t match[window_sequences_max + 1];
  std::uint32_t to_literal[window_sequences_max + 1];

  __device__ __forceinline__ void put(const Step& step) {
    const std::uint32_t lane = this_lane();
    if (lane == 0) {
      last = false;
      kind = step.kind;
      to = step.to;
      size = step.size;
    }
    if (lane <= window_sequences_max) {
      begin[lane] = step.begin;
      match[lane] = step.match;
      to_literal[lane] = step.to_literal;
    }
  }

  __device__ __forceinline__ Step take() const {
    const std::uint32_t lane = min(this_lane(), window_sequences_max);
    return {kind, to, size, begin[lane], match[lane], to_literal[lane]};
  }
};

// The parsing warp's end: fills one of two handovers while the writing warp works on the other.
class Sender {
 public:
  __device__ explicit Sender(Handover* two) : two_(two) {}
  __device__ __forceinline__ void window(const Step& step) { send(step); }
  __device__ __forceinline__ void single(const Step& step) { send(step); }
  __device__ void finish() {
    if (this_lane() == 0) two_[turn_].last = true;
    meet();
  }

 private:
  __device__ __forceinline__ void send(const Step& step) {
    two_[turn_].put(step);
    meet();
    turn_ ^= 1;
  }

  Handover* const two_;
  std::uint32_t turn_ = 0;
};

__device__ __forceinline__ bool acceptable(const CodecTask& task) {
  return task.out_size <= piece_size_max && task.in_size - 1 < coded_size_max;
}

// One block per piece.
__global__ void __launch_bounds__(2 * lane_count)
    decode_by_two(const CodecTask* tasks, std::uint32_t* results) {
  __shared__ Handover handovers[2];
  const CodecTask task = tasks[blockIdx.x];
  if (!acceptable(task)) {
    if (threadIdx.x == 0) results[blockIdx.x] = 0;
    return;
  }
  if (this_warp_in_all_lanes() == 0) {
    Sender sender(handovers);
    const bool valid = Parser(task).run(sender);
    sender.finish();
    if (this_lane() == 0) results[blockIdx.x] = valid;
  } else {
    Writer writer(task);
    for (std::uint32_t turn = 0;; turn ^= 1) {
      meet();
      if (handovers[turn].last) break;
      const Step step = handovers[turn].take();
      if (step.kind == Step::window)
        writer.window(step);
      else
        writer.single(step);
    }
  }
}

constexpr std::uint32_t pieces_a_block = 2;

// One warp per piece.
__global__ void __launch_bounds__(pieces_a_block* lane_count)
    decode_by_one(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
  const std::uint32_t index = blockIdx.x * pieces_a_block + this_warp_in_all_lanes();
  if (index >= count) return;
  const CodecTask task = tasks[index];
  Writer writer(task);
  const bool valid = acceptable(task) && Parser(task).run(writer);
  if (this_lane() == 0) results[index] = valid;
}

// From this many pieces on one warp per piece keeps the device busy.
constexpr std::uint32_t pieces_by_one_min = 3000;

}  // namespace
}  // namespace lz4

std::size_t lz4_decode_workspace_size(std::uint32_t) {
  return 0;
}

cudaError_t lz4_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results, void*,
                       cudaStream_t stream) {
  using namespace lz4;
  if (count == 0) return cudaSuccess;
  if (count < pieces_by_one_min) {
    decode_by_two<<<count, 2 * lane_count, 0, stream>>>(tasks, results);
  } else {
    const std::uint32_t blocks = (count + pieces_a_block - 1) / pieces_a_block;
    decode_by_one<<<blocks, pieces_a_block * lane_count, 0, stream>>>(tasks, count, results);
  }
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
