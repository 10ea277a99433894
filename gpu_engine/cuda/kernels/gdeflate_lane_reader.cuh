// SPDX-License-Identifier: Apache-2.0
// The 32 lanes of a GDeflate page, each read by a lane of a warp (codec/gdeflate/format.h says how
// words are dealt out). Reads nothing outside the page but, where the page is at an odd address,
// the other bytes of its last word.
//
// Warp is what a warp's lanes do together: gdeflate_warp.cuh on a device. Every lane calls what is
// here, at the same time; what a lane does alone is marked.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_format.cuh"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda::gdeflate {

// The sum of the values of this lane and those before it.
template <typename Warp>
NACRE_LANE_CODE std::uint32_t sum_up_to_here(Warp warp, std::uint32_t value) {
  NACRE_UNROLL
  for (std::uint32_t step = 1; step < lane_count; step *= 2) {
    const std::uint32_t before = warp.shuffle_up(value, step);
    if (warp.lane() >= step) value += before;
  }
  return value;
}

// Of a mask of lanes: those before this one, and those and itself.
template <typename Warp>
NACRE_LANE_CODE std::uint32_t lanes_before(Warp warp) {
  return (1u << warp.lane()) - 1;
}
template <typename Warp>
NACRE_LANE_CODE std::uint32_t lanes_up_to_here(Warp warp) {
  return all_lanes >> (lane_count - 1 - warp.lane());
}

// Between reads a lane holds 32 to 63 bits; a read takes at most 31, and refill() follows it before
// another lane is read. Words that the page lacks read as zeros.
//
// The next 64 words of the page wait in registers, two a lane, so that no read waits for memory.
template <typename Warp>
class LaneReader {
 public:
  // size: whole words, at least page_size_bytes_min.
  NACRE_LANE_CODE LaneReader(Warp warp, const Byte* page, std::uint32_t size)
      : warp_(warp),
        words_(reinterpret_cast<const std::uint32_t*>(reinterpret_cast<std::uintptr_t>(page) &
                                                      ~std::uintptr_t{3})),
        shift_(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(page) & 3) * 8),
        word_count_(size / word_size),
        ahead_(3 * lane_count) {
    bits_ = word(warp.lane());
    near_ = word(lane_count + warp.lane());
    far_ = word(2 * lane_count + warp.lane());
  }

  // The lane's own: its next 32 bits.
  NACRE_LANE_CODE std::uint32_t bits() const { return static_cast<std::uint32_t>(bits_); }
  NACRE_LANE_CODE void skip(std::uint32_t count) {
    bits_ >>= count;
    count_ -= count;
  }

  // Lanes that hold fewer than 32 bits take a word each, in their order. A lane is asked for at
  // most one of the words that it keeps: they are 32 in a row, and it knows which.
  NACRE_LANE_CODE void refill() {
    const bool needs = count_ < word_bits;
    const std::uint32_t needing = warp_.ballot(needs);
    const std::uint32_t place = taken_ + warp_.popcount(needing & lanes_before(warp_));
    const std::uint32_t kept = warp_.lane() >= taken_ ? near_ : far_;
    const std::uint32_t word = warp_.shuffle(kept, place % lane_count);
    if (needs) {
      bits_ |= std::uint64_t{word} << count_;
      count_ += word_bits;
    }
    taken_ += warp_.popcount(needing);
    if (taken_ >= lane_count) advance();
  }

  // The bits of one lane, for all of them. count: at most 16.
  NACRE_LANE_CODE std::uint32_t take_from_first(std::uint32_t count) {
    const std::uint32_t value = warp_.shuffle(bits(), 0) & ((1u << count) - 1);
    if (warp_.lane() == 0) skip(count);
    refill();
    return value;
  }

  // Whether more words have been taken than the page has.
  NACRE_LANE_CODE bool torn() const { return word_end() > word_count_; }
  NACRE_LANE_CODE bool at_end() const { return word_end() == word_count_; }

 private:
  static constexpr std::uint32_t word_size = word_size_bytes;

  // Words taken since the page began.
  NACRE_LANE_CODE std::uint32_t word_end() const { return ahead_ - 2 * lane_count + taken_; }

  NACRE_LANE_CODE void advance() {
    taken_ -= lane_count;
    near_ = far_;
    far_ = word(ahead_ + warp_.lane());
    ahead_ += lane_count;
  }

  NACRE_LANE_CODE std::uint32_t word(std::uint32_t index) const {
    if (index >= word_count_) return 0;
    const std::uint32_t low = warp_.load(words_ + index);
    if (shift_ == 0) return low;
    return low >> shift_ | warp_.load(words_ + index + 1) << (word_bits - shift_);
  }

  Warp warp_;
  const std::uint32_t* const words_;
  const std::uint32_t shift_;  // of the page's bytes in words_
  const std::uint32_t word_count_;
  std::uint64_t bits_;
  std::uint32_t count_ = word_bits;
  std::uint32_t near_;       // words ahead_ - 64 … ahead_ - 33
  std::uint32_t far_;        // words ahead_ - 32 … ahead_ - 1
  std::uint32_t taken_ = 0;  // of near_
  std::uint32_t ahead_;
};

}  // namespace nacre::engine::cuda::gdeflate
