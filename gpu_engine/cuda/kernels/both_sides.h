// SPDX-License-Identifier: Apache-2.0
// Macros and constants for code that is compiled for the device and for the host. Tests run such
// code on the host, where the hints for the device's compiler are empty.
#pragma once

#include <cstdint>

// NACRE_HOST_DEVICE: a function for both sides. NACRE_BOTH_SIDES: the same, always inlined on the
// device. NACRE_LANE_CODE: for nvcc a function of the device alone, always inlined; for a host
// compiler an ordinary function.
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
#define NACRE_UNROLL_BY_4 _Pragma("unroll 4")
#else
#define NACRE_UNROLL
#define NACRE_NO_UNROLL
#define NACRE_UNROLL_BY_4
#endif

namespace nacre::engine::cuda {

// The lanes of a warp, and the mask that names all of them.
inline constexpr std::uint32_t lane_count = 32;
inline constexpr std::uint32_t all_lanes = 0xffffffffu;

}  // namespace nacre::engine::cuda
