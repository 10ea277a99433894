// SPDX-License-Identifier: Apache-2.0
// A warp of a device, as the GDeflate decoder's lanes know it. All 32 lanes call what says
// "together" at the same time; the rest is a lane's own.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_format.cuh"

namespace nacre::engine::cuda::gdeflate {

struct DeviceWarp {
  NACRE_LANE_CODE static std::uint32_t lane() { return threadIdx.x % lane_count; }

  // Together.
  NACRE_LANE_CODE static std::uint32_t ballot(bool vote) { return __ballot_sync(all_lanes, vote); }
  NACRE_LANE_CODE static std::uint32_t shuffle(std::uint32_t value, std::uint32_t from) {
    return __shfl_sync(all_lanes, value, static_cast<int>(from));
  }
  // Of the lane that many before this one; its own value where there is none.
  NACRE_LANE_CODE static std::uint32_t shuffle_up(std::uint32_t value, std::uint32_t by) {
    return __shfl_up_sync(all_lanes, value, by);
  }
  // The lanes that have this lane's value.
  NACRE_LANE_CODE static std::uint32_t lanes_alike(std::uint32_t value) {
    return __match_any_sync(all_lanes, value);
  }
  NACRE_LANE_CODE static std::uint32_t or_of_lanes(std::uint32_t bits) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(all_lanes, bits);
#else
    for (std::uint32_t step = 1; step < lane_count; step *= 2)
      bits |= __shfl_xor_sync(all_lanes, bits, step);
    return bits;
#endif
  }
  // What the lanes stored before is what they load behind it.
  NACRE_LANE_CODE static void sync() {
    __syncwarp();
  }

  // A lane's own. Of no bits there is neither a lowest nor a highest.
  NACRE_LANE_CODE static std::uint32_t popcount(std::uint32_t bits) {
    return static_cast<std::uint32_t>(__popc(bits));
  }
  NACRE_LANE_CODE static std::uint32_t lowest(std::uint32_t bits) {
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(bits)) - 1);
  }
  NACRE_LANE_CODE static std::uint32_t highest(std::uint32_t bits) {
    return static_cast<std::uint32_t>(31 - __clz(static_cast<int>(bits)));
  }
  NACRE_LANE_CODE static std::uint32_t reverse(std::uint32_t bits) {
    return __brev(bits);
  }

  // What lies in global memory.
  template <typename T>
  NACRE_LANE_CODE static T load(const T* from) {
    __builtin_assume(__isGlobal(from));
    return *from;
  }
  template <typename T>
  NACRE_LANE_CODE static void store(T* to, T value) {
    __builtin_assume(__isGlobal(to));
    *to = value;
  }
};

}  // namespace nacre::engine::cuda::gdeflate
