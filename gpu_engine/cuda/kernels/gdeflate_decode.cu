// SPDX-License-Identifier: Apache-2.0
// GDeflate pages, decoded by a warp each, or by two where there are few: one reads, and copies of
// matches are the other's.
//
// Counted: 175 instructions of a warp for a round of about 100 bytes, so 570 GB/s where an H200
// issues all it can; 45 for 32 literals, so 740. Executed are 330 for 124 bytes, so 380. Measured
// on one, 2026-11-22, 64 KiB pieces of Silesia: level 3 36, 61, 110, 156 and 192 GB/s with 512,
// 1,024, 2,048, 4,096 and 10,000 pieces, literals alone 67, 131, 235, 304 and 355.
#include "gpu_engine/cuda/kernels/gdeflate_decode.h"
#include "gpu_engine/cuda/kernels/gdeflate_page.cuh"
#include "gpu_engine/cuda/kernels/gdeflate_warp.cuh"

namespace nacre::engine::cuda {
namespace gdeflate {
namespace {

__device__ __forceinline__ std::uint32_t this_warp() {
  return DeviceWarp::shuffle(threadIdx.x / lane_count, 0);
}

constexpr std::uint32_t pieces_a_block = 2;

// A warp a piece.
__global__ void __launch_bounds__(pieces_a_block* lane_count)
    decode_by_one(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
  __shared__ PageMemory memories[pieces_a_block];
  const std::uint32_t index = blockIdx.x * pieces_a_block + this_warp();
  if (index >= count) return;
  const CodecTask task = tasks[index];
  const bool valid = decode_page(DeviceWarp(), memories[this_warp()], task);
  if (DeviceWarp::lane() == 0) results[index] = valid;
}

// The matches of a round on their way from warp to warp.
struct Handover {
  bool last;  // there are none any more
  std::uint32_t which;
  std::uint32_t to[lane_count];
  std::uint32_t size[lane_count];
  std::uint32_t distance[lane_count];
};

// Both warps meet, from wherever each of them is.
__device__ __forceinline__ void meet() {
  asm volatile("barrier.sync 0;" ::: "memory");
}

// The reader's end: fills one handover while the other warp takes the other.
class MatchSender {
 public:
  __device__ explicit MatchSender(Handover* two) : two_(two) {}

  __device__ __forceinline__ void copy(std::uint32_t which, const Match& match) {
    const std::uint32_t lane = DeviceWarp::lane();
    Handover& handover = two_[turn_];
    if (lane == 0) {
      handover.last = false;
      handover.which = which;
    }
    handover.to[lane] = match.to;
    handover.size[lane] = match.size;
    handover.distance[lane] = match.distance;
    meet();
    turn_ ^= 1;
  }
  __device__ void finish() {
    if (DeviceWarp::lane() == 0) two_[turn_].last = true;
    meet();
  }

 private:
  Handover* const two_;
  std::uint32_t turn_ = 0;
};

__device__ __forceinline__ void copy_what_comes(PageMemory& memory, const Handover* two,
                                                Byte* out) {
  MatchCopier<DeviceWarp> copier(DeviceWarp(), memory, out);
  const std::uint32_t lane = DeviceWarp::lane();
  for (std::uint32_t turn = 0;; turn ^= 1) {
    meet();
    const Handover& handover = two[turn];
    if (handover.last) return;
    copier.copy(handover.which, {handover.to[lane], handover.size[lane], handover.distance[lane]});
  }
}

// Which warp of a block reads: a warp stays with the scheduler that its place in the multiprocessor
// gives it, and all schedulers are to have as many readers.
__device__ __forceinline__ std::uint32_t choose_reader() {
  __shared__ std::uint32_t reader;
  std::uint32_t place;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(place));
  if (threadIdx.x == 0) reader = place / 4 % 2;
  __syncthreads();
  return reader;
}

// A block a piece.
__global__ void __launch_bounds__(2 * lane_count)
    decode_by_two(const CodecTask* tasks, std::uint32_t* results) {
  __shared__ PageMemory memory;
  __shared__ Handover handovers[2];
  const CodecTask task = tasks[blockIdx.x];
  if (!can_be_page(task)) {
    if (threadIdx.x == 0) results[blockIdx.x] = 0;
    return;
  }
  if (this_warp() != choose_reader()) {
    copy_what_comes(memory, handovers, task.out);
    return;
  }
  MatchSender sender(handovers);
  const bool valid = PageDecoder<DeviceWarp, MatchSender>(DeviceWarp(), memory, task, sender).run();
  sender.finish();
  if (DeviceWarp::lane() == 0) results[blockIdx.x] = valid;
}

// From this count on the device is busy with a warp each.
constexpr std::uint32_t pieces_by_one_min = 3000;

}  // namespace
}  // namespace gdeflate

std::size_t gdeflate_decode_workspace_size(std::uint32_t /*count*/) {
  return 0;
}

cudaError_t gdeflate_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* /*workspace*/, cudaStream_t stream) {
  using namespace gdeflate;
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
