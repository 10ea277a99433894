// SPDX-License-Identifier: Apache-2.0
// A warp that deals bits out to the 32 lanes of a page, a thread a lane;
// codec/gdeflate/page_writer.h says where the words lie.
//
// Several warps write a page together, each some rounds behind those of the warp before it. What
// the lanes got before is counted first, so a warp knows how full each lane's open word is and how
// many words have places. It does not know two places, those of the open word and of the one behind
// it: words that belong there it keeps until the warps before it have handed these over.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_description.cuh"

namespace nacre::engine::cuda::gdeflate {

constexpr std::uint32_t word_size = word_size_bytes;

// What a lane hands over to the next warp, and what there is before the first.
struct OpenLane {
  std::uint32_t open = this_lane();  // place of the open word
  std::uint32_t following = this_lane();
  std::uint32_t bits = 0;  // of the open word
};

// Words that a page takes when its lanes have got so many bits each. A lane's own.
__device__ __forceinline__ std::uint32_t words_of_lane(std::uint32_t bits) {
  return 1 + (bits + word_bits - 1) / word_bits;
}

class LaneWriter {
 public:
  // bits_before: what this lane got from other warps. out may lie at any address.
  __device__ LaneWriter(Byte* out, std::uint32_t bits_before)
      : out_(out),
        is_aligned_(reinterpret_cast<std::uintptr_t>(out) % word_size == 0),
        count_((bits_before + word_bits - 1) % word_bits + 1),
        next_(sum_of_lanes(words_of_lane(bits_before))) {}

  // All lanes together, in their order.
  __device__ __forceinline__ void put(LaneBits code) {
    const std::uint64_t bits = bits_ | std::uint64_t{code.bits} << count_;
    count_ += code.count;
    const bool is_over = count_ > word_bits;
    const std::uint32_t over = __ballot_sync(all_lanes, is_over);
    bits_ = static_cast<std::uint32_t>(bits);
    if (is_over) {
      close(bits_);
      following_ = next_ + __popc(over & lanes_below());
      bits_ = static_cast<std::uint32_t>(bits >> word_bits);
      count_ -= word_bits;
    }
    next_ += __popc(over);
  }

  // A lane's own: places the words that were kept. Returns what the warp behind is handed over.
  __device__ OpenLane take_over(OpenLane before) const {
    if (open_ == unknown_open) return {before.open, before.following, before.bits | bits_};
    store_word(before.open, kept_[0] | before.bits);
    if (open_ == unknown_following) return {before.following, following_, bits_};
    store_word(before.following, kept_[1]);
    return {open_, following_, bits_};
  }

  // A lane's own: the last words of the page.
  __device__ void finish(OpenLane lane) const {
    store_word(lane.following, 0);
    store_word(lane.open, lane.bits);
  }

 private:
  static constexpr std::uint32_t unknown_open = 0xffffffffu;
  static constexpr std::uint32_t unknown_following = 0xfffffffeu;

  __device__ __forceinline__ void close(std::uint32_t word) {
    if (open_ == unknown_open)
      kept_[0] = word;
    else if (open_ == unknown_following)
      kept_[1] = word;
    else
      store_word(open_, word);
    open_ = following_;
  }

  __device__ __forceinline__ void store_word(std::uint32_t place, std::uint32_t word) const {
    Byte* const to = out_ + place * word_size;
    if (is_aligned_) {
      lz4::store(reinterpret_cast<std::uint32_t*>(to), word);
    } else {
      for (std::uint32_t i = 0; i < word_size; ++i)
        lz4::store(to + i, static_cast<Byte>(word >> 8 * i));
    }
  }

  Byte* const out_;
  const bool is_aligned_;
  std::uint32_t bits_ = 0;
  std::uint32_t count_;  // of the open word's bits: 1 to 32
  std::uint32_t open_ = unknown_open;
  std::uint32_t following_ = unknown_following;
  std::uint32_t next_;  // words that have a place
  std::uint32_t kept_[2] = {0, 0};
};

}  // namespace nacre::engine::cuda::gdeflate
