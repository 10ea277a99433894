// SPDX-License-Identifier: Apache-2.0
// The two kinds of bit streams in a zstd block, both of which are read from their ends. A stream of
// Huffman-coded literals is read by one lane, the stream of sequences by a warp.
#pragma once

#include "gpu_engine/cuda/kernels/zstd_tables.cuh"

namespace nacre::engine::cuda::zstd {

// The words of the sequences' bit stream that are in shared memory: those of the batch that is
// being read and of the next one. A copy of the first word follows the last one.
inline constexpr std::uint32_t ring_word_count = 256;
// The most bits of a sequence: offset, lengths, and three states.
inline constexpr std::uint32_t sequence_bits_max = 31 + 16 + 16 + 9 + 9 + 8;
inline constexpr std::uint32_t batch_words_max = lane_count * sequence_bits_max / 32 + 2;
static_assert(2 * (batch_words_max + lane_count) <= ring_word_count);

// A Huffman stream, which one lane reads.
class LiteralStream {
 public:
  // size is not 0.
  __device__ __forceinline__ LiteralStream(const Byte* bytes, std::uint32_t size)
      : in_(bytes, size) {
    const std::uint32_t mark = in_.end_mark();
    is_ended_well_ = mark != 0;
    high_at_ = static_cast<std::int32_t>(mark / 32);
    taken_ = 32 - mark % 32;
    high_ = in_.word(high_at_);
    low_ = in_.word(high_at_ - 1);
    ahead_ = in_.word(high_at_ - 2);
    move_on();
  }

  // Decodes count symbols. Returns whether these were all that the stream holds.
  __device__ __forceinline__ bool decode(const std::uint16_t* table, std::uint32_t log, Byte* out,
                                         std::uint32_t count) {
    if (!is_ended_well_) return false;
    const std::uint32_t shift = 32 - log;
    const std::uint32_t to_aligned =
        static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(out)) & 3;
    const std::uint32_t head = min(count, to_aligned);
    for (std::uint32_t i = 0; i < head; ++i)
      store(out + i, static_cast<Byte>(next(table, shift) >> 8));
    out += head;
    count -= head;
    for (; count >= 4; count -= 4, out += 4) {
      const std::uint32_t two = next_two(table, shift);
      store(reinterpret_cast<std::uint32_t*>(out), two | next_two(table, shift) << 16);
    }
    for (std::uint32_t i = 0; i < count; ++i)
      store(out + i, static_cast<Byte>(next(table, shift) >> 8));
    return 32 * (high_at_ + 1) - static_cast<std::int32_t>(taken_) ==
           static_cast<std::int32_t>(in_.first_bit());
  }

 private:
  // Codes of two symbols have at most 22 bits, so 32 are enough for them.
  static_assert(2 * huffman_log_max <= 32);
  __device__ __forceinline__ std::uint32_t next_two(const std::uint16_t* table,
                                                    std::uint32_t shift) {
    const std::uint32_t bits = __funnelshift_l(low_, high_, taken_);
    const std::uint32_t one = table[bits >> shift];
    const std::uint32_t two = table[bits_after(bits, one) >> shift];
    taken_ += (one + two) & 0xff;
    move_on();
    return one >> 8 | (two & 0xff00);
  }
  // The symbol's entry.
  __device__ __forceinline__ std::uint32_t next(const std::uint16_t* table, std::uint32_t shift) {
    const std::uint32_t entry = table[__funnelshift_l(low_, high_, taken_) >> shift];
    taken_ += entry & 0xff;
    move_on();
    return entry;
  }
  // Words before the beginning of the stream count as zeros.
  __device__ __forceinline__ void move_on() {
    if (taken_ < 32) return;
    taken_ -= 32;
    --high_at_;
    high_ = low_;
    low_ = ahead_;
    ahead_ = in_.word(high_at_ - 2);
  }

  const InputWords in_;
  // The words at the reading place: taken_ (0 … 31) bits of high_ have been read.
  std::uint32_t high_ = 0;
  std::uint32_t low_ = 0;
  std::uint32_t ahead_ = 0;
  std::int32_t high_at_ = 0;
  std::uint32_t taken_ = 0;
  bool is_ended_well_ = false;
};

// The bit stream of sequences: a window of it in shared memory.
class SequenceStream {
 public:
  // All lanes together, as are the other functions. size is not 0.
  __device__ __forceinline__ SequenceStream(std::uint32_t* ring, const Byte* bytes,
                                            std::uint32_t size)
      : ring_(ring), in_(bytes, size) {
    const std::uint32_t mark = in_.end_mark();
    is_ended_well_ = mark != 0;
    at_ = static_cast<std::int32_t>(mark);
    low_ = static_cast<std::int32_t>((in_.word_count() + lane_count - 1) / lane_count * lane_count);
    ahead_ = in_.word(low_ - static_cast<std::int32_t>(lane_count - this_lane()));
  }

  __device__ __forceinline__ bool is_ended_well() const { return is_ended_well_; }
  __device__ __forceinline__ std::int32_t first_bit() const {
    return static_cast<std::int32_t>(in_.first_bit());
  }
  // The place at which reading goes on. In a bad stream it may lie before the beginning.
  __device__ __forceinline__ std::int32_t& at() { return at_; }

  // Loads the words of the batch that begins at at(). The words of the batch before it stay. No
  // lane may still read words of earlier batches.
  __device__ __forceinline__ void prepare_batch() {
    const std::int32_t need = (at_ >> 5) - static_cast<std::int32_t>(batch_words_max);
    __syncwarp();
    while (low_ > need && low_ > 0) {
      low_ -= static_cast<std::int32_t>(lane_count);
      const std::uint32_t place = static_cast<std::uint32_t>(low_) % ring_word_count + this_lane();
      ring_[place] = ahead_;
      if (place == 0) ring_[ring_word_count] = ahead_;
      ahead_ = in_.word(low_ - static_cast<std::int32_t>(lane_count - this_lane()));
    }
    __syncwarp();
  }

  // Per lane: the 32 bits below a place, of which the highest is read first. The result is
  // undefined if the place lies before the stream or outside the loaded words.
  __device__ __forceinline__ std::uint32_t bits_below(std::int32_t place) const {
    const auto from = static_cast<std::uint32_t>(place) - 32;
    const std::uint32_t* const word = ring_ + from / 32 % ring_word_count;
    return __funnelshift_r(word[0], word[1], from);
  }

 private:
  std::uint32_t* const ring_;
  const InputWords in_;
  std::int32_t at_ = 0;
  std::int32_t low_ = 0;     // the lowest word that is in the ring
  std::uint32_t ahead_ = 0;  // the lane's word of the next ones
  bool is_ended_well_ = false;
};

}  // namespace nacre::engine::cuda::zstd
