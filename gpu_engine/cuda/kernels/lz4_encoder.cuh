// SPDX-License-Identifier: Apache-2.0
// A warp codes a part of a piece as LZ4 sequences: one for each match that match_finder.cuh gives.
//
// The plain loop takes the matches from left to right, and writes for each the token, the literals
// before it and the distance, at the place where the sequence before ended. Here lane k has the
// k-th match of a window. An inclusive sum over the sizes of their sequences gives the places of
// all. Lane k writes the k-th sequence without its literals. A literal is written by the lane at
// whose position it is: by counting the matches that begin up to there, the lane knows to which
// sequence it belongs. Literals before the window are copied by the whole warp.
#pragma once

#include "gpu_engine/cuda/kernels/lz4_format.cuh"
#include "gpu_engine/cuda/kernels/match_finder.cuh"

namespace nacre::engine::cuda::lz4 {

static_assert(found_size_min == match_size_min);

// The sequences that a warp has made of its part.
struct Part {
  std::uint32_t size;            // of their code; 0: there are none, and only `fits` is set
  std::uint32_t first_literals;  // how many literals the first sequence has
  std::uint32_t literals_from;   // offset in the piece of the literals left over for the next part
  bool fits;
};

template <std::uint32_t entry_count>
class Encoder {
 public:
  // Codes in[from … size). Matches may reach back to in[0]. table: entry_count zeros of 16 bits.
  __device__ Encoder(const Byte* in, std::uint32_t from, std::uint32_t size, Byte* out,
                     std::uint32_t out_size, std::uint32_t* table)
      : finder_(in, from, size, table), in_(in), size_(size), out_(out), out_size_(out_size) {}

  // Enters the bytes before the part into the table.
  __device__ void learn_history() { finder_.learn_history(); }

  __device__ Part run() {
    finder_.start();
    while (finder_.find()) {
      if (!write_sequences()) return {0, 0, 0, false};
    }
    return {place_, first_literals_, finder_.literals_from(), true};
  }

 private:
  // Writes the window's sequences; false when they do not fit.
  __device__ __forceinline__ bool write_sequences() {
    const std::uint32_t lane = this_lane();
    const std::uint32_t begin = finder_.begin();
    const std::uint32_t window_literals_from = finder_.literals_from();
    const Byte literal = finder_.byte_here();
    const ChosenMatches matches = finder_.choose(size_ - last_literals);
    const Sequence mine = {matches.from - matches.literals_from, matches.end - matches.from,
                           matches.distance};
    const std::uint32_t size = lane < matches.count ? mine.size() : 0;
    std::uint32_t place = size;
    for (std::uint32_t step = 1; step < window_matches_max; step *= 2) {
      const std::uint32_t before = __shfl_up_sync(all_lanes, place, step);
      if (lane >= step) place += before;
    }
    const std::uint32_t total = __shfl_sync(all_lanes, place, window_matches_max - 1);
    if (total > out_size_ - place_) return false;
    place += place_ - size;
    if (lane < matches.count) mine.put(out_ + place);

    // The owner of a lane's byte is the first match that begins after it. The byte is a literal of
    // that match's sequence if it is not part of the match before.
    const std::uint32_t here = begin + lane;
    const std::uint32_t literals_to = place + 1 + extra_bytes(mine.literals);
    const std::uint32_t owner = __popc(matches.lanes & (all_lanes >> (lane_count - 1 - lane)));
    const std::uint32_t owner_end = __shfl_sync(all_lanes, matches.from, owner);
    const std::uint32_t owner_from = __shfl_sync(all_lanes, matches.literals_from, owner);
    const std::uint32_t owner_to =
        __shfl_sync(all_lanes, literals_to - matches.literals_from, owner);
    if (owner < matches.count && here >= owner_from && here < owner_end)
      store(out_ + (owner_to + here), literal);
    if (window_literals_from < begin)
      copy_bytes(out_ + __shfl_sync(all_lanes, literals_to, 0), in_ + window_literals_from,
                 min(__shfl_sync(all_lanes, matches.from, 0), begin) - window_literals_from);
    if (place_ == 0) first_literals_ = __shfl_sync(all_lanes, mine.literals, 0);
    place_ += total;
    return true;
  }

  MatchFinder<entry_count> finder_;
  const Byte* const in_;
  const std::uint32_t size_;
  Byte* const out_;
  const std::uint32_t out_size_;
  std::uint32_t place_ = 0;  // of the next token, in out_
  std::uint32_t first_literals_ = 0;
};

}  // namespace nacre::engine::cuda::lz4
