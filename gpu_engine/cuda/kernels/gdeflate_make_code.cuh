// SPDX-License-Identifier: Apache-2.0
// A warp that makes a Huffman code out of counts: the very sizes that codec/gdeflate/huffman_code.h
// makes of them, and the canonical code of these.
//
// Lanes share the sorting (each counts the keys below its own), the depths and the numbering. The
// joining of the two least is lane 0's alone, two steps for a symbol: some 20,000 cycles for 257 of
// them, during which other pieces have the multiprocessor.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_format.cuh"
#include "gpu_engine/cuda/kernels/lz4_warp.cuh"

namespace nacre::engine::cuda::gdeflate {

using lz4::this_lane;

constexpr std::uint32_t symbol_bits = 9;

// A code of up to 15 bits, its first lowest, below its size. 0: the symbol has none.
constexpr std::uint32_t code_size_shift = 16;
using Code = std::uint32_t;

__device__ __forceinline__ std::uint32_t code_size(Code code) {
  return code >> code_size_shift;
}
__device__ __forceinline__ std::uint32_t code_bits(Code code) {
  return code & ((1u << code_size_shift) - 1);
}

__device__ __forceinline__ std::uint32_t lanes_below() {
  return (1u << this_lane()) - 1;
}

__device__ __forceinline__ std::uint32_t sum_of_lanes(std::uint32_t value) {
  for (std::uint32_t step = lane_count / 2; step > 0; step /= 2)
    value += __shfl_xor_sync(all_lanes, value, step);
  return value;
}

// Of the lanes up to this one.
__device__ __forceinline__ std::uint32_t sum_up_to_here(std::uint32_t value) {
  for (std::uint32_t step = 1; step < lane_count; step *= 2) {
    const std::uint32_t before = __shfl_up_sync(all_lanes, value, step);
    if (this_lane() >= step) value += before;
  }
  return value;
}

// A warp's own, in shared memory.
struct CodeScratch {
  std::uint32_t keys[litlen_symbol_count_max];  // count above symbol; then the sums of the trees
  std::uint32_t sorted[litlen_symbol_count_max];
  std::uint16_t
      parents[litlen_symbol_count_max];  // of the trees, in the order in which they were made
  std::uint32_t counts_of_size[code_size_bits_max + 1];
  std::uint32_t next_code[code_size_bits_max + 1];
};

// counts and codes: symbol_count of them in shared memory, at most 288; counts below 2^22. Where
// fewer than two symbols occur, the first others are given a code.
class CodeMaker {
 public:
  __device__ CodeMaker(const std::uint32_t* counts, std::uint32_t symbol_count,
                       std::uint32_t size_max, Code* codes, CodeScratch& scratch)
      : counts_(counts),
        symbol_count_(symbol_count),
        size_max_(size_max),
        codes_(codes),
        scratch_(scratch) {}

  __device__ void run() {
    collect();
    sort();
    if (this_lane() == 0) join_trees();
    __syncwarp();
    count_sizes();
    spread_sizes();
    number();
  }

 private:
  __device__ void collect() {
    used_ = 0;
    for (std::uint32_t first = 0; first < symbol_count_; first += lane_count) {
      const std::uint32_t symbol = first + this_lane();
      const std::uint32_t count = symbol < symbol_count_ ? counts_[symbol] : 0;
      const std::uint32_t occurs = __ballot_sync(all_lanes, count != 0);
      if (count != 0)
        scratch_.keys[used_ + __popc(occurs & lanes_below())] = count << symbol_bits | symbol;
      used_ += __popc(occurs);
    }
    if (used_ < 2) {
      if (this_lane() == 0) {
        for (std::uint32_t symbol = 0, at = used_; at < 2; ++symbol)
          if (counts_[symbol] == 0) scratch_.keys[at++] = symbol;
      }
      used_ = 2;
    }
    __syncwarp();
  }

  __device__ void sort() {
    for (std::uint32_t i = this_lane(); i < used_; i += lane_count) {
      const std::uint32_t mine = scratch_.keys[i];
      std::uint32_t below = 0;
#pragma unroll 8
      for (std::uint32_t j = 0; j < used_; ++j)
        below += scratch_.keys[j] < mine;
      scratch_.sorted[below] = mine;
    }
    __syncwarp();
  }

  // A lane's own. Leaves and trees wait in the order of their sums; of equals leaves come first.
  // Both sums are read anew for each child: with the tree's kept in a register across the loop,
  // ptxas of CUDA 13.0 made code for sm_80 and sm_90 that lost it (right without optimisation).
  __device__ void join_trees() {
    constexpr std::uint32_t none = 0xffffffffu;
    std::uint32_t* const sums = scratch_.keys;
    const std::uint32_t* const sorted = scratch_.sorted;
    const std::uint32_t used = used_;
    std::uint32_t leaf = 0;
    std::uint32_t tree = 0;
    for (std::uint32_t made = 0; made + 1 < used; ++made) {
      std::uint32_t sum = 0;
      for (int child = 0; child < 2; ++child) {
        const std::uint32_t leaf_sum = leaf < used ? sorted[leaf] >> symbol_bits : none;
        const std::uint32_t tree_sum = tree < made ? sums[tree] : none;
        if (tree_sum < leaf_sum) {
          sum += tree_sum;
          scratch_.parents[tree++] = static_cast<std::uint16_t>(made);
        } else {
          sum += leaf_sum;
          ++leaf;
        }
      }
      sums[made] = sum;
    }
  }

  // How many leaves there are at each depth: those children of the inner nodes above that are no
  // inner nodes. Parents grow with the number of the node, so the nodes of a depth lie side by
  // side. Depths past the limit are cut to it, and what this takes too much of the code is given
  // back by making the longest of the shorter codes longer.
  __device__ void count_sizes() {
    if (this_lane() <= code_size_bits_max) scratch_.counts_of_size[this_lane()] = 0;
    __syncwarp();
    std::uint32_t end = used_ - 2;  // of the nodes below this depth: the root's number
    std::uint32_t inner = 1;        // nodes of this depth
    std::uint32_t depth = 1;
    for (; inner > 0; ++depth) {
      std::uint32_t inner_below = 0;
      for (std::uint32_t first = 0; first < end; first += lane_count) {
        const std::uint32_t node = first + this_lane();
        inner_below +=
            __popc(__ballot_sync(all_lanes, node < end && scratch_.parents[node] >= end));
      }
      if (this_lane() == 0)
        scratch_.counts_of_size[min(depth, size_max_)] += 2 * inner - inner_below;
      end -= inner_below;
      inner = inner_below;
    }
    if (depth - 1 > size_max_ && this_lane() == 0) shorten();
    __syncwarp();
  }

  // A lane's own.
  __device__ void shorten() {
    std::uint32_t* const counts = scratch_.counts_of_size;
    std::uint32_t taken = 0;  // of the 2^size_max codes of the longest size
    for (std::uint32_t size = 1; size <= size_max_; ++size)
      taken += counts[size] << (size_max_ - size);
    for (; taken > 1u << size_max_; --taken) {
      --counts[size_max_];
      std::uint32_t size = size_max_ - 1;
      while (counts[size] == 0)
        --size;
      --counts[size];
      counts[size + 1] += 2;
    }
  }

  // The rarest symbols get the longest codes.
  __device__ void spread_sizes() {
    for (std::uint32_t symbol = this_lane(); symbol < symbol_count_; symbol += lane_count)
      codes_[symbol] = 0;
    __syncwarp();
    for (std::uint32_t i = this_lane(); i < used_; i += lane_count) {
      std::uint32_t size = size_max_;
      std::uint32_t place = i;
      while (place >= scratch_.counts_of_size[size])
        place -= scratch_.counts_of_size[size--];
      codes_[scratch_.sorted[i] % (1u << symbol_bits)] = size << code_size_shift;
    }
    if (this_lane() <= code_size_bits_max) {
      std::uint32_t next = 0;
      for (std::uint32_t size = 1; size < this_lane(); ++size)
        next += scratch_.counts_of_size[size] << (this_lane() - size);
      scratch_.next_code[this_lane()] = next;
    }
    __syncwarp();
  }

  __device__ void number() {
    for (std::uint32_t first = 0; first < symbol_count_; first += lane_count) {
      const std::uint32_t symbol = first + this_lane();
      const std::uint32_t size = symbol < symbol_count_ ? code_size(codes_[symbol]) : 0;
      const std::uint32_t peers = __match_any_sync(all_lanes, size);
      const std::uint32_t next = scratch_.next_code[size];
      __syncwarp();
      const std::uint32_t before = __popc(peers & lanes_below());
      if (size != 0) {
        codes_[symbol] |= __brev(next + before) >> (32 - size);
        if (before == 0) scratch_.next_code[size] = next + __popc(peers);
      }
      __syncwarp();
    }
  }

  const std::uint32_t* const counts_;
  const std::uint32_t symbol_count_;
  const std::uint32_t size_max_;
  Code* const codes_;
  CodeScratch& scratch_;
  std::uint32_t used_ = 0;
};

}  // namespace nacre::engine::cuda::gdeflate
