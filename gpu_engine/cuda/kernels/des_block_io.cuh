// SPDX-License-Identifier: Apache-2.0
// 8-byte blocks of a message at any address, as two little-endian words. Nothing outside the
// message is touched: what lies past its size reads as zeros and is not written.
#pragma once

#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/des_parts.h"

namespace nacre::engine::cuda {

static __device__ __noinline__ uint2 load_any_des_block(const Byte* message, std::uint64_t offset,
                                                        std::uint64_t size) {
  __builtin_assume(__isGlobal(message));
  if (offset >= size) return make_uint2(0, 0);
  const Byte* const at = message + offset;
  const std::uint64_t left = size - offset;
  const std::uint32_t skew = alignment_of(at) % 8;
  if (left >= des_block_bytes && skew == 0) return *reinterpret_cast<const uint2*>(at);
  // A block with neighbours on both sides is cut out of the aligned words it lies in.
  if (offset >= 4 && left >= des_block_bytes + 4) {
    const std::uint32_t shift = 8 * (skew % 4);
    const auto* const words = reinterpret_cast<const std::uint32_t*>(at - skew % 4);
    const std::uint32_t w0 = words[0], w1 = words[1];
    if (shift == 0) return make_uint2(w0, w1);
    const std::uint32_t w2 = words[2];
    return make_uint2(__funnelshift_r(w0, w1, shift), __funnelshift_r(w1, w2, shift));
  }
  const auto count = static_cast<std::uint32_t>(left < des_block_bytes ? left : des_block_bytes);
  return make_uint2(load_bytes(at, min(count, 4u)), count > 4 ? load_bytes(at + 4, count - 4) : 0);
}

// Not through a call where nothing is to be cut: what a call loads is waited for before it returns.
__device__ inline uint2 load_des_block(const Byte* message, std::uint64_t offset,
                                       std::uint64_t size) {
  __builtin_assume(__isGlobal(message));
  if (alignment_of(message) % 8 == 0 && offset % 8 == 0 && offset + des_block_bytes <= size)
    return *reinterpret_cast<const uint2*>(message + offset);
  return load_any_des_block(message, offset, size);
}

static __device__ __noinline__ void store_any_des_block(Byte* message, std::uint64_t offset,
                                                        std::uint64_t size, uint2 block) {
  __builtin_assume(__isGlobal(message));
  if (offset >= size) return;
  Byte* const at = message + offset;
  const std::uint64_t left = size - offset;
  const std::uint32_t skew = alignment_of(at) % 8;
  if (left >= des_block_bytes && skew == 0) {
    *reinterpret_cast<uint2*>(at) = block;
  } else if (left >= des_block_bytes && skew == 4) {
    reinterpret_cast<std::uint32_t*>(at)[0] = block.x;
    reinterpret_cast<std::uint32_t*>(at)[1] = block.y;
  } else {
    // Unrolled, so that the block stays in registers.
#pragma unroll
    for (std::uint32_t i = 0; i < des_block_bytes; ++i) {
      if (i < left) at[i] = static_cast<Byte>((i < 4 ? block.x : block.y) >> 8 * (i % 4));
    }
  }
}

__device__ inline void store_des_block(Byte* message, std::uint64_t offset, std::uint64_t size,
                                       uint2 block) {
  __builtin_assume(__isGlobal(message));
  if (alignment_of(message) % 8 == 0 && offset % 8 == 0 && offset + des_block_bytes <= size)
    *reinterpret_cast<uint2*>(message + offset) = block;
  else
    store_any_des_block(message, offset, size, block);
}

}  // namespace nacre::engine::cuda
