// SPDX-License-Identifier: Apache-2.0
// Decodes each GDeflate page with two warps: one reads codes, the other copies the matches. From
// 3,000 pages on one warp per page does both.
//
// gdeflate_decoder.cuh derives what a warp does. By count, a round of about 100 bytes takes 175
// instructions of a warp, which gives 570 GB/s if an H200 issues all that it can. 32 literals take
// 45, which gives 740. In fact 330 are executed for 124 bytes, which gives 380. Measured on an
// H200, 2026-11-22, 64 KiB pieces of Silesia:
//
//   pieces                  512   1,024   2,048   4,096   10,000
//   level 3, GB/s            36      61     110     156      192
//   literals alone, GB/s     67     131     235     304      355
#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/copy_bytes.cuh"
#include "gpu_engine/cuda/kernels/gdeflate_decoder.cuh"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {
namespace gdeflate {
namespace {

// The operations of a warp that the decoder needs, on a device. After "All lanes together" all 32
// lanes must call a function at the same time, after "Per lane" any lane may.
struct DeviceWarp {
  NACRE_LANE_CODE static std::uint32_t lane() { return threadIdx.x % lane_count; }

  // All lanes together.
  NACRE_LANE_CODE static std::uint32_t ballot(bool vote) { return __ballot_sync(all_lanes, vote); }
  NACRE_LANE_CODE static std::uint32_t shuffle(std::uint32_t value, std::uint32_t from) {
    return __shfl_sync(all_lanes, value, static_cast<int>(from));
  }
  // The value of the lane `by` places before this one; the lane's own value where there is none.
  NACRE_LANE_CODE static std::uint32_t shuffle_up(std::uint32_t value, std::uint32_t by) {
    return __shfl_up_sync(all_lanes, value, by);
  }
  // The lanes that have this lane's value.
  NACRE_LANE_CODE static std::uint32_t lanes_alike(std::uint32_t value) {
    return __match_any_sync(all_lanes, value);
  }
  NACRE_LANE_CODE static std::uint32_t or_of_lanes(std::uint32_t bits) {
    return cuda::or_of_lanes(bits);
  }
  // Loads of any lane after it see what any lane stored before it.
  NACRE_LANE_CODE static void sync() { __syncwarp(); }

  // Per lane. bits is not 0 for lowest() and highest().
  NACRE_LANE_CODE static std::uint32_t popcount(std::uint32_t bits) {
    return static_cast<std::uint32_t>(__popc(bits));
  }
  NACRE_LANE_CODE static std::uint32_t lowest(std::uint32_t bits) {
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
  }
  NACRE_LANE_CODE static std::uint32_t highest(std::uint32_t bits) {
    return static_cast<std::uint32_t>(31 - __clz(static_cast<int>(bits)));
  }
  NACRE_LANE_CODE static std::uint32_t reverse(std::uint32_t bits) { return __brev(bits); }

  // Values in global memory.
  template <typename T>
  NACRE_LANE_CODE static T load(const T* from) {
    return cuda::load(from);
  }
  template <typename T>
  NACRE_LANE_CODE static void store(T* to, T value) {
    cuda::store(to, value);
  }
};

constexpr std::uint32_t pieces_a_block = 2;

// One warp per piece.
__global__ void __launch_bounds__(pieces_a_block* lane_count)
    decode_by_one(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
  __shared__ PageMemory memories[pieces_a_block];
  const std::uint32_t index = blockIdx.x * pieces_a_block + this_warp_in_all_lanes();
  if (index >= count) return;
  const CodecTask task = tasks[index];
  const bool valid = decode_page(DeviceWarp(), memories[this_warp_in_all_lanes()], task);
  if (DeviceWarp::lane() == 0) results[index] = valid;
}

// The matches of a round, handed from the reading warp to the copying warp.
struct Handover {
  bool last;            // no matches: the page has ended
  std::uint32_t which;  // mask of the lanes that have a match
  std::uint32_t to[lane_count];
  std::uint32_t size[lane_count];
  std::uint32_t distance[lane_count];
};

// The reading warp's end: fills one of two handovers while the copying warp works on the other.
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

// Which warp of a block is the reader. A warp's place in the multiprocessor determines its
// scheduler, and all schedulers should have equally many readers.
__device__ __forceinline__ std::uint32_t choose_reader() {
  __shared__ std::uint32_t reader;
  std::uint32_t place;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(place));
  if (threadIdx.x == 0) reader = place / 4 % 2;
  __syncthreads();
  return reader;
}

// One block per piece.
__global__ void __launch_bounds__(2 * lane_count)
    decode_by_two(const CodecTask* tasks, std::uint32_t* results) {
  __shared__ PageMemory memory;
  __shared__ Handover handovers[2];
  const CodecTask task = tasks[blockIdx.x];
  if (!can_be_page(task)) {
    if (threadIdx.x == 0) results[blockIdx.x] = 0;
    return;
  }
  if (this_warp_in_all_lanes() != choose_reader()) {
    copy_what_comes(memory, handovers, task.out);
    return;
  }
  MatchSender sender(handovers);
  const bool valid = PageDecoder<DeviceWarp, MatchSender>(DeviceWarp(), memory, task, sender).run();
  sender.finish();
  if (DeviceWarp::lane() == 0) results[blockIdx.x] = valid;
}

// From this many pieces on one warp per piece keeps the device busy.
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
