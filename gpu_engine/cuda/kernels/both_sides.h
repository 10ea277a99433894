// SPDX-License-Identifier: Apache-2.0
// Macros and constants for code that both the device's compiler and the host's compile. Tests run
// such code on the host, where the hints for the device's compiler mean nothing.
#pragma once

#include <cstdint>

// NACRE_HOST_DEVICE: a function of both sides. NACRE_BOTH_SIDES: the same, always inlined.
// NACRE_LANE_CODE: a device's function, always inlined, which a host compiler takes for its own.
#ifdef __CUDACC__
#define NACRE_HOST_DEVICE __host__ __device__
#define NACRE_BOTH_SIDES __host__ __device__ __forceinline__
#define NACRE_LANE_CODE __device__ __forceinline__
#else
#define NACRE_HOST_DEVICE
#define NACRE_BOTH_SIDES inline
#define NACRE_LANE_CODE inline
#endif
#ifdef __CUDA_ARCH__
#define NACRE_UNROLL _Pragma("unroll")
#define NACRE_NO_UNROLL _Pragma("unroll 1")
#else
#define NACRE_UNROLL
#define NACRE_NO_UNROLL
#endif

namespace nacre::engine::cuda {

// The lanes of a warp, and the mask that names all of them.
inline constexpr std::uint32_t lane_count = 32;
inline constexpr std::uint32_t all_lanes = 0xffffffffu;

}  // namespace nacre::engine::cuda
