// SPDX-License-Identifier: Apache-2.0
// Encodes PackBits (docs/FORMAT.md): one warp encodes one part of a piece. The bytes equal those of
// gpu_engine/codec/rle.cpp.
//
// The plain loop walks from run to run:
//
//   while (i < size) {
//     run = how often byte i repeats, at most 128 times;
//     if the run is long enough: put the header 257 - run and the byte;
//     else: put the literals up to the next such run, at most 128 of them, after their number - 1;
//   }
//
// Here everything is a mask with a bit for each byte. A lane has the bits of 128 bytes, its window.
// Masks of equal neighbours, shifted and combined, say where groups begin:
//
//   - at the first byte of a run of four or more equal bytes, and at every 128th byte of it after
//     that; but if only one byte of the run is left there, it is a literal,
//   - at the first of some literals, and at every 128th byte of them after that.
//
// Two or three equal literals between two runs are also coded as a run. A run or some literals that
// began before a window and go on in it start a new group at most once in the window: at the same
// place modulo 128 at which they began. So all that a lane must know of the lanes before it is
// where the last run or literals began. The size of the code and the place of each byte are then
// counts of bits.
//
// By count a byte takes 0.72 instructions of a warp, which gives 1,400 GB/s if an H200 issues all
// that it can. Measured on an H200, 2026-11-22, 64 KiB pieces of Silesia: 575 and 910 GB/s with 512
// and 10,000 pieces.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"
#include "gpu_engine/cuda/kernels/rle_format.cuh"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda::rle {

inline constexpr std::uint32_t window_size = 128;  // bytes of a lane
static_assert(window_size * lane_count == part_size_max && window_size == group_size_max);
inline constexpr std::uint32_t word_count = part_size_max / 32;

// The bits of a window; the first byte has the lowest bit. All functions of windows: per lane,
// unless they shuffle.
struct Window {
  std::uint64_t low;
  std::uint64_t high;

  __device__ friend Window operator&(Window a, Window b) {
    return {a.low & b.low, a.high & b.high};
  }
  __device__ friend Window operator|(Window a, Window b) {
    return {a.low | b.low, a.high | b.high};
  }
  __device__ Window operator~() const { return {~low, ~high}; }
  __device__ bool has(std::uint32_t i) const {
    return ((i < 64 ? low : high) >> (i % 64) & 1) != 0;
  }
  __device__ bool empty() const { return (low | high) == 0; }
  __device__ std::uint32_t count() const {
    return static_cast<std::uint32_t>(__popcll(low) + __popcll(high));
  }
  // The index of the first set bit; 128 if none is set.
  __device__ std::uint32_t first() const {
    if (low != 0) return static_cast<std::uint32_t>(__ffsll(low)) - 1;
    return high != 0 ? static_cast<std::uint32_t>(__ffsll(high)) + 63 : window_size;
  }
  // The index of the last set bit. At least one must be set.
  __device__ std::uint32_t last() const {
    return static_cast<std::uint32_t>(high != 0 ? 127 - __clzll(high) : 63 - __clzll(low));
  }
  __device__ void drop_first() {
    if (low != 0)
      low &= low - 1;
    else
      high &= high - 1;
  }
  __device__ std::uint32_t word(std::uint32_t i) const {
    return static_cast<std::uint32_t>((i < 2 ? low : high) >> (i % 2 * 32));
  }
};

inline __device__ Window bit_at(std::uint32_t i) {
  const std::uint64_t bit = std::uint64_t{1} << (i % 64);
  return {i < 64 ? bit : 0, i < 64 ? 0 : bit};
}

// A mask of the bits before place i, which is at most 128.
inline __device__ Window bits_below(std::uint32_t i) {
  const std::uint64_t below = (std::uint64_t{1} << (i % 64)) - 1;
  return {i < 64 ? below : ~std::uint64_t{0}, i < 64            ? 0
                                              : i < window_size ? below
                                                                : ~std::uint64_t{0}};
}

// Each bit i becomes bit i + distance of the bits. next: the low half of the next lane's window.
inline __device__ Window later(Window bits, std::uint64_t next, std::uint32_t distance) {
  return {bits.low >> distance | bits.high << (64 - distance),
          bits.high >> distance | next << (64 - distance)};
}
// Each bit i becomes bit i - distance of the bits. previous: the high half of the previous lane's
// window.
inline __device__ Window earlier(Window bits, std::uint64_t previous, std::uint32_t distance) {
  return {bits.low << distance | previous >> (64 - distance),
          bits.high << distance | bits.low >> (64 - distance)};
}
inline __device__ std::uint64_t low_of_next(Window bits) {
  const std::uint64_t next = __shfl_down_sync(all_lanes, bits.low, 1);
  return this_lane() == lane_count - 1 ? 0 : next;
}
inline __device__ std::uint64_t high_of_previous(Window bits) {
  const std::uint64_t previous = __shfl_up_sync(all_lanes, bits.high, 1);
  return this_lane() == 0 ? 0 : previous;
}

// The place modulo 128 of the last set bit before this lane's window. For lanes without such a bit
// the result has no meaning. All lanes call it together.
inline __device__ std::uint32_t last_beginning(Window begins) {
  const std::uint32_t having = __ballot_sync(all_lanes, !begins.empty());
  const std::uint32_t mine = begins.empty() ? 0 : begins.last();
  const std::uint32_t before = having & ((1u << this_lane()) - 1);
  return __shfl_sync(all_lanes, mine, before == 0 ? 0 : 31 - __clz(before));
}

// Bit i of the result, for i from 0 to 3: byte i of a equals byte i of b.
inline __device__ std::uint32_t equal_bytes(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t x = a ^ b;
  const std::uint32_t zeros = ~(((x & 0x7f7f7f7f) + 0x7f7f7f7f) | x) & 0x80808080;
  return zeros * 0x00204081 >> 28;  // bits 7, 15, 23, 31 to 28 … 31
}

// The memory of one warp: the plain bytes, which the code later overwrites, and the layout of the
// code. The code begins up to 15 bytes after bytes[0], at its final address modulo 16. The code of
// the first p plain bytes has at most p + p / 128 + 1 bytes. So writing it never overwrites a plain
// byte that has not been read.
struct alignas(16) EncoderMemory {
  static constexpr std::uint32_t plain_at = 64;
  static_assert(plain_at >= 15 + part_code_size_max - part_size_max + 1);

  Byte bytes[plain_at + part_size_max + 16];
  std::uint32_t literal[word_count];  // bit i: byte i is a literal (at first: equals byte i + 1)
  std::uint32_t head[word_count];     // bit i: a group begins with byte i
  std::uint16_t place[word_count];    // for each 32 plain bytes: where their code begins
};

class PartEncoder {
 public:
  // size: 1 … 4096 plain bytes at in.
  __device__ PartEncoder(EncoderMemory& memory, const Byte* in, std::uint32_t size)
      : memory_(memory), size_(size) {
    copy_bytes(memory.bytes + EncoderMemory::plain_at, in, size, this_lane(), lane_count);
    __syncwarp();
    mark_equal();
    __syncwarp();
    find_groups();
  }

  __device__ std::uint32_t code_size() const { return code_size_; }

  // Writes the code to out.
  __device__ void write(Byte* out) {
    const auto skew = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(out) % 16);
    Byte* const code = memory_.bytes + skew;
    write_bytes(code);
    write_lengths(code);
    __syncwarp();
    copy_aligned_alike(out, code, code_size_, this_lane(), lane_count);
  }

 private:
  __device__ const Byte* plain() const { return memory_.bytes + EncoderMemory::plain_at; }

  __device__ void mark_equal() {
    auto* const marks = reinterpret_cast<std::uint16_t*>(memory_.literal);
    for (std::uint32_t i = this_lane(); i < part_size_max / 16; i += lane_count) {
      if (16 * i >= size_) break;
      const uint4 here = *reinterpret_cast<const uint4*>(plain() + 16 * i);
      const std::uint32_t next = plain()[16 * i + 16];
      const std::uint32_t equal = equal_bytes(here.x, __funnelshift_r(here.x, here.y, 8)) |
                                  equal_bytes(here.y, __funnelshift_r(here.y, here.z, 8)) << 4 |
                                  equal_bytes(here.z, __funnelshift_r(here.z, here.w, 8)) << 8 |
                                  equal_bytes(here.w, __funnelshift_r(here.w, next, 8)) << 12;
      marks[i] = static_cast<std::uint16_t>(equal);
    }
  }

  __device__ void find_groups() {
    const std::uint32_t lane = this_lane();
    const std::uint32_t from = lane * window_size;
    const Window inside = bits_below(size_ <= from ? 0 : min(size_ - from, window_size));
    Window equal = {0, 0};
    if (size_ > from + 1) {
      const std::uint32_t* const words = memory_.literal + 4 * lane;
      equal = {words[0] | std::uint64_t{words[1]} << 32, words[2] | std::uint64_t{words[3]} << 32};
      equal = equal & bits_below(min(size_ - 1 - from, window_size));
    }
    const std::uint64_t equal_next = low_of_next(equal);
    const Window equal_before = earlier(equal, high_of_previous(equal), 1);
    const Window four = equal & later(equal, equal_next, 1) & later(equal, equal_next, 2);
    const std::uint64_t four_previous = high_of_previous(four);
    const Window in_run = four | earlier(four, four_previous, 1) | earlier(four, four_previous, 2) |
                          earlier(four, four_previous, 3);

    Window heads = in_run & ~equal_before;
    const Window goes_on = in_run & equal_before;
    const std::uint32_t run_again = last_beginning(heads);
    Window left_over = {0, 0};
    if (run_again < (~goes_on).first()) {
      const Window again = bit_at(run_again);
      left_over = again & ~equal;
      heads = heads | (again & equal);
    }

    Window literal = inside & (~in_run | left_over);
    const std::uint64_t literal_next = low_of_next(literal);
    const Window literal_before = earlier(literal, high_of_previous(literal), 1);
    const Window begins = literal & ~literal_before;
    const Window two =
        begins & equal & later(literal, literal_next, 1) & ~later(literal, literal_next, 2);
    const Window three = begins & equal & later(equal, equal_next, 1) &
                         later(literal, literal_next, 1) & later(literal, literal_next, 2) &
                         ~later(literal, literal_next, 3);
    const Window small = two | three;
    const std::uint32_t literal_again = last_beginning(begins);
    heads = heads | begins;
    if (literal_again < (~(literal & literal_before)).first())
      heads = heads | bit_at(literal_again);
    literal = literal & ~(small | earlier(small, high_of_previous(small), 1) |
                          earlier(three, high_of_previous(three), 2));
    place(literal, heads);
  }

  __device__ void place(Window literal, Window heads) {
    const std::uint32_t lane = this_lane();
    const std::uint32_t mine = code_size_of(literal, heads);
    const std::uint32_t end = inclusive_sum(mine);
    code_size_ = from_last_lane(end);
    literal_ = literal;
    heads_ = heads;
    place_ = end - mine;
    __syncwarp();  // all lanes have read the marks that are overwritten now
    std::uint32_t at = place_;
#pragma unroll
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t literal_word = literal.word(i);
      const std::uint32_t head_word = heads.word(i);
      memory_.literal[4 * lane + i] = literal_word;
      memory_.head[4 * lane + i] = head_word;
      memory_.place[4 * lane + i] = static_cast<std::uint16_t>(at);
      at += code_size_of(literal_word, head_word);
    }
    __syncwarp();
  }

  __device__ static std::uint32_t code_size_of(Window literal, Window heads) {
    return literal.count() + (heads & literal).count() + 2 * (heads & ~literal).count();
  }
  __device__ static std::uint32_t code_size_of(std::uint32_t literal, std::uint32_t heads) {
    return static_cast<std::uint32_t>(__popc(literal) + __popc(heads & literal) +
                                      2 * __popc(heads & ~literal));
  }

  // Writes all bytes of the code except the headers. Each lane writes what comes from four plain
  // bytes at a time.
  __device__ void write_bytes(Byte* code) {
    const std::uint32_t lane = this_lane();
    const auto* const words = reinterpret_cast<const std::uint32_t*>(plain());
    const std::uint32_t shift = lane % 8 * 4;
    const std::uint32_t below = (1u << shift) - 1;
    for (std::uint32_t i = 0; i * window_size < size_; ++i) {
      std::uint32_t bytes = words[i * lane_count + lane];
      const std::uint32_t word = 4 * i + lane / 8;
      std::uint32_t literal = memory_.literal[word];
      std::uint32_t heads = memory_.head[word];
      Byte* to = code + memory_.place[word] + code_size_of(literal & below, heads & below);
      literal = literal >> shift & 15;
      heads = heads >> shift & 15;
      __syncwarp();
      if (literal == 15 && heads <= 1) {
        to += heads;
#pragma unroll
        for (std::uint32_t byte = 0; byte < 4; ++byte)
          to[byte] = static_cast<Byte>(bytes >> (8 * byte));
      } else if ((literal | heads) != 0) {
#pragma unroll
        for (std::uint32_t byte = 0; byte < 4; ++byte) {
          const std::uint32_t is_literal = literal >> byte & 1;
          const std::uint32_t is_head = heads >> byte & 1;
          to += is_head;
          if ((is_literal | is_head) != 0) *to++ = static_cast<Byte>(bytes >> (8 * byte));
        }
      }
    }
  }

  // Writes the headers of the groups that begin in this lane's window. A group ends where the next
  // one begins.
  __device__ void write_lengths(Byte* code) {
    const std::uint32_t from = this_lane() * window_size;
    const std::uint32_t mine = heads_.first();
    const std::uint32_t next = __shfl_down_sync(all_lanes, mine, 1);
    const std::uint32_t window_end = size_ <= from ? 0 : min(size_ - from, 2 * window_size);
    const std::uint32_t groups_end =
        this_lane() == lane_count - 1 ? window_end : min(window_end, window_size + next);
    Window rest = heads_;
    std::uint32_t begin = mine;
    std::uint32_t at = place_ + (literal_ & bits_below(mine)).count();
    while (!rest.empty()) {
      rest.drop_first();
      const std::uint32_t end = rest.empty() ? groups_end : rest.first();
      const std::uint32_t size = end - begin;
      const bool literals = literal_.has(begin);
      code[at] = static_cast<Byte>(literals ? size - 1 : 257 - size);
      at += literals ? size + 1 : 2;
      begin = end;
    }
  }

  EncoderMemory& memory_;
  std::uint32_t size_;
  std::uint32_t code_size_;
  Window literal_;  // of this lane's window, as in EncoderMemory
  Window heads_;
  std::uint32_t place_;  // where the code of this lane's window begins
};

// Encodes a piece with a block that has one warp for each part. memory: one element for each warp.
// sizes: part_count_max elements in shared memory. Returns the size of the code in thread 0, or 0
// when it does not fit.
inline __device__ std::uint32_t encode_piece(const CodecTask& task, EncoderMemory* memory,
                                             std::uint32_t* sizes) {
  const std::uint32_t warp = this_warp();
  const std::uint32_t part_count = count_parts(task.in_size);
  if (task.in_size == 0 || task.in_size > piece_size_max) return 0;
  if (warp >= part_count) {
    __syncthreads();
    return 0;
  }
  PartEncoder encoder(memory[warp], task.in + warp * part_size_max, part_size(task.in_size, warp));
  if (this_lane() == 0) sizes[warp] = encoder.code_size();
  __syncthreads();
  const std::uint32_t size = this_lane() < part_count ? sizes[this_lane()] : 0;
  const std::uint32_t end = inclusive_sum(size);
  const std::uint32_t total = 2 * part_count + from_last_lane(end);
  if (total > min(task.out_size, task.in_size - 1)) return 0;
  encoder.write(task.out + 2 * part_count + __shfl_sync(all_lanes, end - size, warp));
  if (warp == 0 && this_lane() < part_count) {
    task.out[2 * this_lane()] = static_cast<Byte>(size);
    task.out[2 * this_lane() + 1] = static_cast<Byte>(size >> 8);
  }
  return total;
}

// The same with fewer warps than parts: in each turn a warp encodes one part.
inline __device__ std::uint32_t encode_piece_in_turns(const CodecTask& task, EncoderMemory* memory,
                                                      std::uint32_t warp_count,
                                                      std::uint32_t* sizes) {
  const std::uint32_t warp = this_warp();
  const std::uint32_t part_count = count_parts(task.in_size);
  if (task.in_size == 0 || task.in_size > piece_size_max) return 0;
  const std::uint32_t room = min(task.out_size, task.in_size - 1);
  std::uint32_t total = 0;
  for (std::uint32_t first = 0; first < part_count; first += warp_count) {
    const std::uint32_t part = first + warp;
    if (part >= part_count) {
      __syncthreads();
      continue;
    }
    PartEncoder encoder(memory[warp], task.in + part * part_size_max,
                        part_size(task.in_size, part));
    if (this_lane() == 0) sizes[part] = encoder.code_size();
    __syncthreads();
    const std::uint32_t known = min(part_count, first + warp_count);
    const std::uint32_t size = this_lane() < known ? sizes[this_lane()] : 0;
    const std::uint32_t end = 2 * part_count + inclusive_sum(size);
    total = from_last_lane(end);
    // A part that does not fit is not written, and the parts after it do not fit either.
    if (__shfl_sync(all_lanes, end, static_cast<int>(part)) <= room)
      encoder.write(task.out + __shfl_sync(all_lanes, end - size, static_cast<int>(part)));
    __syncwarp();
  }
  // The first warp has a part in each turn.
  if (warp != 0 || total > room) return 0;
  if (this_lane() < part_count) {
    task.out[2 * this_lane()] = static_cast<Byte>(sizes[this_lane()]);
    task.out[2 * this_lane() + 1] = static_cast<Byte>(sizes[this_lane()] >> 8);
  }
  return total;
}

}  // namespace nacre::engine::cuda::rle
