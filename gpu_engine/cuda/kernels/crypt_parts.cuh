// SPDX-License-Identifier: Apache-2.0
// The kernels behind crypt(), from which crypt.cu chooses, and what the kernels of the parallel
// modes share: loading a task, and counter blocks.
//
// CTR: while only the counter's last byte changes, 15 of the first round's 16 look-ups and 12 of
// the second round's give the same results (Park and Lee, "FACE", 2018). A lane keeps the sums of
// these. Along a message, only the last byte of a lane's counter changes for eight steps in a row.
#pragma once

#include <cstddef>

#include "gpu_engine/cuda/kernels/aes.cuh"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/tile_plan.h"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {

struct CryptMessage {
  const Byte* in;
  Byte* out;
  std::uint64_t size;
  std::uint32_t key;
  uint4 iv;
};

// Loads a task in three loads.
__device__ inline CryptMessage load_message(const CryptTask* tasks, std::uint32_t index) {
  static_assert(sizeof(CryptTask) == 48 && offsetof(CryptTask, out) == 8 &&
                offsetof(CryptTask, size) == 16 && offsetof(CryptTask, key) == 24 &&
                offsetof(CryptTask, iv) == 28);
  const auto* const words = reinterpret_cast<const uint4*>(tasks) + 3 * index;
  const uint4 pointers = words[0], middle = words[1], end = words[2];
  const auto pair = [](std::uint32_t low, std::uint32_t high) {
    return std::uint64_t{high} << 32 | low;
  };
  return {reinterpret_cast<const Byte*>(pair(pointers.x, pointers.y)),
          reinterpret_cast<Byte*>(pair(pointers.z, pointers.w)), pair(middle.x, middle.y), middle.z,
          make_uint4(middle.w, end.x, end.y, end.z)};
}

// A round of encryption whose column 0 is left zero.
template <typename Tables>
__device__ inline uint4 round_without_first_column(const Tables& t, uint4 s, uint4 key) {
  return make_uint4(0,
                    t.template at<0>(s.y) ^ t.template at<1>(s.z) ^ t.template at<2>(s.w) ^
                        t.template at<3>(s.x),
                    t.template at<0>(s.z) ^ t.template at<1>(s.w) ^ t.template at<2>(s.x) ^
                        t.template at<3>(s.y),
                    t.template at<0>(s.w) ^ t.template at<1>(s.x) ^ t.template at<2>(s.y) ^
                        t.template at<3>(s.z)) ^
         key;
}

// The first two rounds of counters that differ only in their last byte.
struct CounterRounds {
  std::uint32_t upper;  // bits 8 to 39 of the counter: higher bits never change between two steps
  bool valid = false;
  std::uint32_t last_column;  // of counter ^ key 0, where the counter's last byte counts as 0
  std::uint32_t round_1;      // column 0 after round 1, without the last byte's look-up
  uint4 round_2;              // after round 2, without the look-ups of round 1's column 0

  template <typename Tables>
  __device__ void prepare(const Tables& t, const uint4 (&keys)[15], uint4 counter) {
    const uint4 s = counter ^ keys[0];
    const uint4 key_1 = keys[1];
    last_column = s.w;
    round_1 = t.template at<0>(s.x) ^ t.template at<1>(s.y) ^ t.template at<2>(s.z) ^ key_1.x;
    const uint4 m = round_without_first_column(t, s, key_1);
    round_2 = keys[2];
    round_2.x ^= t.template at<1>(m.y) ^ t.template at<2>(m.z) ^ t.template at<3>(m.w);
    round_2.y ^= t.template at<0>(m.y) ^ t.template at<1>(m.z) ^ t.template at<2>(m.w);
    round_2.z ^= t.template at<0>(m.z) ^ t.template at<1>(m.w) ^ t.template at<3>(m.y);
    round_2.w ^= t.template at<0>(m.w) ^ t.template at<2>(m.y) ^ t.template at<3>(m.z);
  }

  // The state after two rounds. last_byte: the counter's.
  template <typename Tables>
  __device__ uint4 state(const Tables& t, std::uint32_t last_byte) const {
    const std::uint32_t column = round_1 ^ t.template at<3>(last_column ^ last_byte << 24);
    return round_2 ^ make_uint4(t.template at<0>(column), t.template at<3>(column),
                                t.template at<2>(column), t.template at<1>(column));
  }
};

// A counter block, which can be had without its last byte.
struct Counter {
  std::uint64_t high, low;

  __device__ Counter(uint4 iv, std::uint64_t block) {
    high = std::uint64_t{swap_bytes(iv.x)} << 32 | swap_bytes(iv.y);
    low = std::uint64_t{swap_bytes(iv.z)} << 32 | swap_bytes(iv.w);
    skip(block);
  }
  __device__ void skip(std::uint64_t blocks) {
    low += blocks;
    if (low < blocks) ++high;
  }
  __device__ std::uint32_t upper() const { return static_cast<std::uint32_t>(low >> 8); }
  __device__ std::uint32_t last_byte() const { return static_cast<std::uint32_t>(low) & 0xff; }
  __device__ uint4 block_without_last_byte() const {
    return make_uint4(swap_bytes(static_cast<std::uint32_t>(high >> 32)),
                      swap_bytes(static_cast<std::uint32_t>(high)),
                      swap_bytes(static_cast<std::uint32_t>(low >> 32)),
                      swap_bytes(static_cast<std::uint32_t>(low) & ~0xffu));
  }
};

// The key stream block of `counter`. rounds: kept by the lane between calls.
template <typename Tables>
__device__ inline uint4 next_key_stream(const Tables& tables, const uint4 (&keys)[15],
                                        std::uint32_t round_count, const Counter& counter,
                                        CounterRounds& rounds) {
  if (!rounds.valid || rounds.upper != counter.upper()) {
    rounds.valid = true;
    rounds.upper = counter.upper();
    rounds.prepare(tables, keys, counter.block_without_last_byte());
  }
  return run_rounds<false, 3>(tables, rounds.state(tables, counter.last_byte()), keys, round_count);
}

__device__ inline uint4 shuffle(uint4 block, std::uint32_t from) {
  return make_uint4(__shfl_sync(all_lanes, block.x, from), __shfl_sync(all_lanes, block.y, from),
                    __shfl_sync(all_lanes, block.z, from), __shfl_sync(all_lanes, block.w, from));
}

inline constexpr std::uint32_t blocks_per_unit = 16;
inline constexpr std::uint32_t unit_bytes = blocks_per_unit * 16;
inline constexpr std::uint32_t crypt_units_per_tile = 32;

// previous_blocks: scratch memory for CBC decryption, one element for each tile of the plan.
cudaError_t crypt_parallel(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                           const TilePlanWorkspace& plan, const CipherKeyGroup* keys,
                           uint4* previous_blocks, cudaStream_t stream);

// CTR, for tasks of at most unit_bytes each.
cudaError_t crypt_short_counters(const CryptTask* tasks, std::uint32_t count,
                                 const CipherKeyGroup* keys, cudaStream_t stream);

cudaError_t crypt_serial(CryptMode mode, const CryptTask* tasks, std::uint32_t count,
                         const CipherKeyGroup* keys, cudaStream_t stream);

}  // namespace nacre::engine::cuda
