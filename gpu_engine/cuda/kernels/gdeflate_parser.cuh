// SPDX-License-Identifier: Apache-2.0
// A warp that cuts a part of a piece into the items of a GDeflate page: literals, and the matches
// that match_finder.cuh gives, which may reach to the piece's end and have any size.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_format.cuh"
#include "gpu_engine/cuda/kernels/match_finder.cuh"

namespace nacre::engine::cuda::gdeflate {

using lz4::found_size_min;  // the format has 3, which rarely pays
using lz4::this_lane;

// A literal: its byte. A match: this bit and its size; its distance stands in a list of their own.
using PartItem = std::uint16_t;
constexpr PartItem match_item = 0x8000;
constexpr std::uint32_t item_size_max = match_item - 1;  // longer than a part

// What a warp hands over.
struct PartItems {
  std::uint32_t items;    // count
  std::uint32_t matches;  // of them
};

template <std::uint32_t entry_count>
class Parser {
 public:
  // Cuts in[from … size). Matches reach back to in[0]. items: room for size − from of them;
  // distances: for a quarter of that. The table is all zeros.
  __device__ Parser(const Byte* in, std::uint32_t from, std::uint32_t size, PartItem* items,
                    std::uint16_t* distances, std::uint32_t* table)
      : finder_(in, from, size, table),
        in_(in),
        size_(size),
        items_(items),
        distances_(distances) {}

  // Enters what lies before the part into the table.
  __device__ void learn_history() { finder_.learn_history(); }

  __device__ PartItems run() {
    finder_.start();
    while (finder_.find())
      add_sequences();
    add_literals(item_count_, finder_.literals_from(), size_);
    return {item_count_ + size_ - finder_.literals_from(), match_count_};
  }

 private:
  // The window's matches, with the literals before them.
  __device__ __forceinline__ void add_sequences() {
    const std::uint32_t lane = this_lane();
    const std::uint32_t begin = finder_.begin();
    const std::uint32_t window_literals_from = finder_.literals_from();
    const Byte literal = finder_.byte_here();
    const lz4::ChosenMatches matches = finder_.choose(size_);
    const std::uint32_t added = lane < matches.count ? matches.from - matches.literals_from + 1 : 0;
    std::uint32_t place = added;
    for (std::uint32_t step = 1; step < lz4::window_matches_max; step *= 2) {
      const std::uint32_t before = __shfl_up_sync(all_lanes, place, step);
      if (lane >= step) place += before;
    }
    const std::uint32_t total = __shfl_sync(all_lanes, place, lz4::window_matches_max - 1);
    place += item_count_ - added;
    if (lane < matches.count) {
      lz4::store(items_ + (place + added - 1),
                 static_cast<PartItem>(match_item | (matches.end - matches.from)));
      lz4::store(distances_ + (match_count_ + lane), static_cast<std::uint16_t>(matches.distance));
    }

    // A lane's byte is a literal before the first match that begins behind it, or of none.
    const std::uint32_t here = begin + lane;
    const std::uint32_t owner = __popc(matches.lanes & (all_lanes >> (lane_count - 1 - lane)));
    const std::uint32_t owner_end = __shfl_sync(all_lanes, matches.from, owner);
    const std::uint32_t owner_from = __shfl_sync(all_lanes, matches.literals_from, owner);
    const std::uint32_t owner_to = __shfl_sync(all_lanes, place - matches.literals_from, owner);
    if (owner < matches.count && here >= owner_from && here < owner_end)
      lz4::store(items_ + (owner_to + here), static_cast<PartItem>(literal));
    if (window_literals_from < begin)
      add_literals(item_count_, window_literals_from,
                   min(__shfl_sync(all_lanes, matches.from, 0), begin));
    item_count_ += total;
    match_count_ += matches.count;
  }

  __device__ __forceinline__ void add_literals(std::uint32_t place, std::uint32_t from,
                                               std::uint32_t to) const {
    for (std::uint32_t at = from + this_lane(); at < to; at += lane_count)
      lz4::store(items_ + (place + at - from), static_cast<PartItem>(lz4::load(in_ + at)));
  }

  lz4::MatchFinder<entry_count> finder_;
  const Byte* const in_;
  const std::uint32_t size_;
  PartItem* const items_;
  std::uint16_t* const distances_;
  std::uint32_t item_count_ = 0;
  std::uint32_t match_count_ = 0;
};

}  // namespace nacre::engine::cuda::gdeflate
