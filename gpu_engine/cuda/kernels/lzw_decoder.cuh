// SPDX-License-Identifier: Apache-2.0
// TIFF LZW (docs/FORMAT.md) of one part of a piece, decoded by one warp, 32 codes at a time.
//
// The plain loop, between two clear codes and without its checks:
//
//   for (j = 0;; ++j) {
//     code = the next width(j) bits;  if it is the clear or end code: break;
//     string[258 + j - 1] = string of the code before + the first byte of code's string;  // j > 0
//     write code's string;
//   }
//
// It is a chain, since a code may name the string that the code before it made. The steps from
// there:
//
// 1. How wide a code is depends only on how many there were since the last clear code. So each lane
//    fetches its code by itself.
// 2. Strings are not stored. String 258 + i is what code i wrote and the byte after it: so the
//    places of the codes' bytes in the output are the table.
// 3. Codes that name each other are resolved by pointer doubling. A code's parent is the code i
//    whose string it names. Where the parent lies before these 32 codes, its bytes are in the
//    output already. Else the string is that of an ancestor, which is a byte or has its parent
//    before them, and one byte more for each code on the way. The last byte of a code's string is
//    the first byte of the code after its parent, which depends only on such ancestors.
// 4. An inclusive sum of the strings' sizes gives their places, and each lane copies its own.
//
// Measured on an H200, 2026-11-22, 64 KiB pieces of Silesia: 48, 98, 122, 148 and 154 GB/s with
// 128, 512, 1,024, 4,096 and 10,000 pieces. The kernel waits for its own loads.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"
#include "gpu_engine/cuda/kernels/lzw_format.cuh"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda::lzw {

struct alignas(16) DecoderMemory {
  Byte bytes[part_size_max + 16];  // begins at the output's address modulo 16
  // The place of each code of this section, and of what comes next.
  std::uint16_t places[section_size_max + 1];
};

class PartDecoder {
 public:
  // out: where the bytes will go.
  __device__ PartDecoder(DecoderMemory& memory, const Byte* code, std::uint32_t code_size,
                         const Byte* out, std::uint32_t size)
      : code_(code),
        code_bits_(8 * code_size),
        bytes_(memory.bytes + reinterpret_cast<std::uintptr_t>(out) % 16),
        size_(size),
        places_(memory.places) {}

  // Whether the code decodes to exactly the plain bytes, which are then at bytes().
  __device__ bool run() {
    if (code_bits_ < width_min_bits || fetch(0, width_min_bits) != clear_code) return false;
    std::uint32_t at_bit = width_min_bits;
    while (true) {
      const std::uint32_t count = read_section(at_bit);
      if (count > section_size_max) return false;
      const std::uint32_t width = code_width(count);
      const std::uint32_t special = fetch(at_bit + code_place(count), width);
      at_bit += code_place(count + 1);
      if (special == end_code) break;
    }
    return written_ == size_ && (at_bit + 7) / 8 == code_bits_ / 8 &&
           (at_bit == code_bits_ || fetch(at_bit, code_bits_ - at_bit) == 0);
  }

  __device__ const Byte* bytes() const { return bytes_; }

 private:
  static constexpr std::uint32_t refused = ~0u;

  // A lane's own: up to 12 bits, all of which lie in the code.
  __device__ std::uint32_t fetch(std::uint32_t at_bit, std::uint32_t width) const {
    const Byte* const from = code_ + at_bit / 8;
    const std::uint32_t last = (at_bit + width - 1) / 8 - at_bit / 8;
    std::uint32_t bits = std::uint32_t{from[0]} << 16;
    if (last >= 1) bits |= std::uint32_t{from[1]} << 8;
    if (last >= 2) bits |= from[2];
    return bits >> (24 - at_bit % 8 - width) & ((1u << width) - 1);
  }

  // Reads the codes of the section that begins at that bit, up to a clear or end code. Returns
  // their number, or refused.
  __device__ std::uint32_t read_section(std::uint32_t section_at_bit) {
    if (this_lane() == 0) places_[0] = static_cast<std::uint16_t>(written_);
    __syncwarp();
    for (std::uint32_t first = 0;; first += lane_count) {
      const std::uint32_t j = first + this_lane();
      const std::uint32_t width = code_width(min(j, section_size_max));
      const std::uint32_t at_bit = section_at_bit + code_place(j);
      std::uint32_t code = refused;
      if (j <= section_size_max && at_bit + width <= code_bits_) code = fetch(at_bit, width);
      const bool special = code == clear_code || code == end_code;
      const bool possible = j < section_size_max && code <= end_code + j;
      const std::uint32_t specials = __ballot_sync(all_lanes, special);
      const std::uint32_t count =
          specials == 0 ? lane_count
                        : static_cast<std::uint32_t>(__ffs(static_cast<int>(specials))) - 1;
      const std::uint32_t impossible = __ballot_sync(all_lanes, this_lane() < count && !possible);
      if (impossible != 0 || !write_strings(code, first, count)) return refused;
      if (specials != 0) return first + count;
    }
  }

  // Takes the codes of the first count lanes. None of them is special or names a string that is not
  // made yet. False when there is no room.
  __device__ bool write_strings(std::uint32_t code, std::uint32_t first, std::uint32_t count) {
    const std::uint32_t lane = this_lane();
    const bool active = lane < count;
    const bool literal = !active || code < clear_code;
    const std::uint32_t parent = literal ? 0 : code - first_string;
    const bool inner = !literal && parent >= first;  // the parent is one of these codes
    const bool outer = !literal && !inner;

    // What this code has by itself, or gives to the codes that come from it.
    const std::uint32_t from = outer ? places_[parent] : 0;
    const std::uint32_t behind = outer ? places_[parent + 1] : 0;
    const std::uint32_t copied = behind - from;
    const std::uint32_t own_first = literal ? code & 0xff : outer ? bytes_[from] : 0;

    // Leads to the ancestor, by doubling; it is at most 31 codes away.
    std::uint32_t ancestor = inner ? parent - first : lane;
    std::uint32_t distance = inner ? 1 : 0;
    while (true) {
      const std::uint32_t next = __shfl_sync(all_lanes, ancestor, static_cast<int>(ancestor));
      distance += __shfl_sync(all_lanes, distance, static_cast<int>(ancestor));
      const bool moved = next != ancestor;
      ancestor = next;
      if (__ballot_sync(all_lanes, moved) == 0) break;
    }
    const auto source_lane = static_cast<int>(ancestor);
    const std::uint32_t prefix = __shfl_sync(all_lanes, copied, source_lane);
    const std::uint32_t source = __shfl_sync(all_lanes, from, source_lane);
    const std::uint32_t first_byte = __shfl_sync(all_lanes, own_first, source_lane);
    // The first byte of the code after the parent. Lanes whose parent is not among these codes do
    // not use it.
    const std::uint32_t next_first =
        __shfl_sync(all_lanes, first_byte, static_cast<int>((parent + 1 - first) % lane_count));
    std::uint32_t last_byte = first_byte;
    if (!literal) last_byte = parent + 1 >= first ? next_first : bytes_[behind];

    const std::uint32_t size = active ? prefix + 1 + distance : 0;
    const std::uint32_t end = written_ + inclusive_sum(size);
    const std::uint32_t total = from_last_lane(end);
    if (total > size_) return false;
    if (active) places_[first + lane + 1] = static_cast<std::uint16_t>(end);

    Byte* const to = bytes_ + end - size;
    if (active) copy(to, bytes_ + source, prefix);
    // Writes the bytes of the codes on the way, and of the ancestor, the last one first.
    Byte* tail = bytes_ + end;
    std::uint32_t link = inner ? parent - first : lane;
    std::uint32_t left = active ? distance + 1 : 0;
    std::uint32_t byte = last_byte;
    while (true) {
      if (left != 0) {
        *--tail = static_cast<Byte>(byte);
        --left;
      }
      if (__ballot_sync(all_lanes, left != 0) == 0) break;
      byte = __shfl_sync(all_lanes, last_byte, static_cast<int>(link));
      link = __shfl_sync(all_lanes, inner ? parent - first : lane, static_cast<int>(link));
    }
    written_ = total;
    __syncwarp();
    return true;
  }

  // A lane's own. Several loads are under way before the first store, since the ranges do not
  // overlap.
  __device__ static void copy(Byte* to, const Byte* from, std::uint32_t size) {
    constexpr std::uint32_t step = 4;
    for (std::uint32_t i = 0; i < size; i += step) {
      Byte bytes[step];
#pragma unroll
      for (std::uint32_t k = 0; k < step; ++k)
        bytes[k] = i + k < size ? from[i + k] : Byte{0};
#pragma unroll
      for (std::uint32_t k = 0; k < step; ++k)
        if (i + k < size) to[i + k] = bytes[k];
    }
  }

  const Byte* const code_;
  const std::uint32_t code_bits_;
  Byte* const bytes_;
  const std::uint32_t size_;
  std::uint16_t* const places_;
  std::uint32_t written_ = 0;
};

// A warp decodes a part of a piece. Returns whether the part and the piece's sizes are valid.
inline __device__ bool decode_part(const CodecTask& task, std::uint32_t part,
                                   DecoderMemory& memory) {
  if (task.out_size > piece_size_max || task.in_size >= task.out_size) return false;
  const std::uint32_t part_count = count_parts(task.out_size);
  if (task.in_size < 2 * part_count) return false;
  if (part >= part_count) return true;
  const std::uint32_t lane = this_lane();
  std::uint32_t code_size = 0;
  if (lane < part_count) code_size = task.in[2 * lane] | std::uint32_t{task.in[2 * lane + 1]} << 8;
  const std::uint32_t end = inclusive_sum(code_size) + 2 * part_count;
  if (from_last_lane(end) != task.in_size) return false;
  code_size = __shfl_sync(all_lanes, code_size, static_cast<int>(part));
  const Byte* const code =
      task.in + __shfl_sync(all_lanes, end, static_cast<int>(part)) - code_size;
  Byte* const out = task.out + part * part_size_max;
  const std::uint32_t size = part_size(task.out_size, part);
  PartDecoder decoder(memory, code, code_size, out, size);
  if (!decoder.run()) return false;
  copy_aligned_alike(out, decoder.bytes(), size, lane, lane_count);
  return true;
}

}  // namespace nacre::engine::cuda::lzw
