// SPDX-License-Identifier: Apache-2.0
// Loads and stores blocks of a message at any address: 16 bytes, or for DES 8 bytes as two
// little-endian words. Nothing outside the message is accessed: a block's bytes past the end of the
// message read as zeros, and are not written.
//
// Addresses that are multiples of 16, 8 or 4 take one, two or four accesses. At any other address a
// load cuts a block with neighbours on both sides out of the five aligned words that it lies in.
// The message's first and last block, and all stores, then go byte by byte.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

inline constexpr std::uint64_t block_bytes = 16;
inline constexpr std::uint32_t des_block_bytes = 8;

__device__ inline std::uint32_t alignment_of(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer)) % block_bytes;
}

__device__ inline std::uint32_t load_bytes(const Byte* bytes, std::uint32_t count) {
  std::uint32_t word = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    word |= std::uint32_t{bytes[i]} << (8 * i);
  return word;
}

__device__ inline uint4 load_bytes_of_block(const Byte* bytes, std::uint32_t count) {
  std::uint32_t words[4];
#pragma unroll
  for (std::uint32_t w = 0; w < 4; ++w)
    words[w] = count > 4 * w ? load_bytes(bytes + 4 * w, min(count - 4 * w, 4u)) : 0;
  return make_uint4(words[0], words[1], words[2], words[3]);
}

static __device__ __noinline__ uint4 load_unaligned_block(const Byte* message, std::uint64_t offset,
                                                          std::uint64_t size) {
  const Byte* const at = message + offset;
  __builtin_assume(__isGlobal(at));
  const std::uint64_t left = size - offset;
  if (left < block_bytes) return load_bytes_of_block(at, static_cast<std::uint32_t>(left));
  if (alignment_of(at) % 8 == 0) {
    const uint2 low = *reinterpret_cast<const uint2*>(at);
    const uint2 high = *reinterpret_cast<const uint2*>(at + 8);
    return make_uint4(low.x, low.y, high.x, high.y);
  }
  const std::uint32_t skew = alignment_of(at) % 4;
  if (skew != 0 && (offset < skew || left < block_bytes + 4 - skew))
    return load_bytes_of_block(at, block_bytes);
  const auto* const words = reinterpret_cast<const std::uint32_t*>(at - skew);
  if (skew == 0) return make_uint4(words[0], words[1], words[2], words[3]);
  const std::uint32_t w0 = words[0], w1 = words[1], w2 = words[2], w3 = words[3], w4 = words[4];
  const std::uint32_t shift = 8 * skew;
  return make_uint4(__funnelshift_r(w0, w1, shift), __funnelshift_r(w1, w2, shift),
                    __funnelshift_r(w2, w3, shift), __funnelshift_r(w3, w4, shift));
}

// The 16 bytes at any offset below size. Bytes past the message read as zeros.
__device__ inline uint4 load_block_at(const Byte* message, std::uint64_t offset,
                                      std::uint64_t size) {
  __builtin_assume(__isGlobal(message));
  if (alignment_of(message + offset) == 0 && size - offset >= block_bytes)
    return *reinterpret_cast<const uint4*>(message + offset);
  return load_unaligned_block(message, offset, size);
}

// The same as load_block_at() for an offset of whole blocks, so that the block has the alignment of
// the message.
__device__ inline uint4 load_block(const Byte* message, std::uint64_t offset, std::uint64_t size) {
  __builtin_assume(__isGlobal(message));
  if (alignment_of(message) == 0 && size - offset >= block_bytes)
    return *reinterpret_cast<const uint4*>(message + offset);
  return load_unaligned_block(message, offset, size);
}

static __device__ __noinline__ void store_unaligned_block(Byte* message, std::uint64_t offset,
                                                          std::uint64_t size, uint4 block) {
  Byte* const at = message + offset;
  __builtin_assume(__isGlobal(at));
  const std::uint64_t left = size - offset;
  const std::uint32_t words[4] = {block.x, block.y, block.z, block.w};
  if (left >= block_bytes && alignment_of(at) % 8 == 0) {
    *reinterpret_cast<uint2*>(at) = make_uint2(block.x, block.y);
    *reinterpret_cast<uint2*>(at + 8) = make_uint2(block.z, block.w);
  } else if (left >= block_bytes && alignment_of(at) % 4 == 0) {
#pragma unroll
    for (int w = 0; w < 4; ++w)
      reinterpret_cast<std::uint32_t*>(at)[w] = words[w];
  } else {
    // Unrolled, so that words stays in registers.
#pragma unroll
    for (std::uint32_t i = 0; i < block_bytes; ++i) {
      if (i < left) at[i] = static_cast<Byte>(words[i / 4] >> (8 * (i % 4)));
    }
  }
}

// Stores a block; when it reaches past the message, only the bytes that lie in it.
__device__ inline void store_block(Byte* message, std::uint64_t offset, std::uint64_t size,
                                   uint4 block) {
  __builtin_assume(__isGlobal(message));
  if (alignment_of(message) == 0 && size - offset >= block_bytes)
    *reinterpret_cast<uint4*>(message + offset) = block;
  else
    store_unaligned_block(message, offset, size, block);
}

__device__ inline uint4 operator^(uint4 a, uint4 b) {
  return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

__device__ inline std::uint32_t swap_bytes(std::uint32_t word) {
  return __byte_perm(word, 0, 0x0123);
}

__device__ inline uint4 swap_bytes(uint4 block) {
  return make_uint4(swap_bytes(block.x), swap_bytes(block.y), swap_bytes(block.z),
                    swap_bytes(block.w));
}

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

// An aligned block is loaded here, without a call: a call waits for its loads before it returns.
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
