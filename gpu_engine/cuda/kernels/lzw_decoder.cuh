// SPDX-License-Identifier: Apache-2.0
// Decodes TIFF LZW (docs/FORMAT.md): one warp decodes one part of a piece, 32 codes at a time.
//
// The plain loop, between two clear codes and without its checks:
//
//   for (j = 0;; ++j) {
//     code = the next width(j) bits;  if it is the clear or end code: break;
//     string[258 + j - 1] = string of the code before + the first byte of code's string;  // j > 0
//     write code's string;
//   }
//
// The loop is a chain, since a code may name the string that the code before it made. The steps
// from there:
//
// 1. The width of a code depends only on how many codes there were since the last clear code. So
//    each lane can fetch its code independently.
// 2. Strings are not stored. String 258 + i is what code i wrote and the byte after that. So the
//    places of the codes' bytes in the output are the table.
// 3. Codes that name each other are resolved by pointer doubling. A code that names string 258 + i
//    has code i as its parent. If the parent lies before these 32 codes, its bytes are in the
//    output already. Otherwise the way from parent to parent leads to an ancestor that names a byte
//    or whose parent lies before the 32 codes. The code's string is the ancestor's, and one byte
//    more for each code on the way. The last byte of a code's string is the first byte of the code
//    after its parent, which depends only on the ancestors.
// 4. An inclusive sum of the strings' sizes gives their places, and each lane copies its own
// string.
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
  Byte bytes[part_size_max + 16];  // the plain bytes begin at the output's address modulo 16
  // Where the bytes of each code of this section begin, and at last where those of the next begin.
  std::uint16_t places[section_size_max + 1];
};

class PartDecoder {
 public:
  // out: where the caller will copy the bytes (only its alignment counts here).
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

  // Per lane: returns up to 12 bits of the code. All of them must lie in it.
  __device__ std::uint32_t fetch(std::uint32_t at_bit, std::uint32_t width) const {
    const Byte* const from = code_ + at_bit / 8;
    const std::uint32_t last = (at_bit + width - 1) / 8 - at_bit / 8;
    std::uint32_t bits = std::uint32_t{from[0]} << 16;
    if (last >= 1) bits |= std::uint32_t{from[1]} << 8;
    if (last >= 2) bits |= from[2];
    return bits >> (24 - at_bit % 8 - width) & ((1u << width) - 1);
  }

  // Decodes the section that begins at that bit, up to its clear or end code. Returns how many
  // codes come before that one, or refused.
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

  // Decodes the codes of the first count lanes. None of them is clear or end, or names a string
  // that is not made yet. first: how many codes of the section come before. False when there is no
  // room.
  __device__ bool write_strings(std::uint32_t code, std::uint32_t first, std::uint32_t count) {
    const std::uint32_t lane = this_lane();
    const bool active = lane < count;
    const bool literal = !active || code < clear_code;
    const std::uint32_t parent = literal ? 0 : code - first_string;
    const bool inner = !literal && parent >= first;  // the parent is one of these codes
    const bool outer = !literal && !inner;

    // What this code gives to itself and to its descendants, if it is an ancestor.
    const std::uint32_t from = outer ? places_[parent] : 0;
    const std::uint32_t behind = outer ? places_[parent + 1] : 0;
    const std::uint32_t copied = behind - from;
    const std::uint32_t own_first = literal ? code & 0xff : outer ? bytes_[from] : 0;

    // Finds the ancestor by pointer doubling. It is at most 31 codes away.
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
    // The first byte of the code after the parent. It is used only if that code is one of these 32.
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
    // Writes the last byte of each code on the way and of the ancestor, from the back to the front.
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

  // Per lane: copies bytes between ranges that do not overlap, so several loads can be under way
  // before the first store.
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

// Decodes one part of a piece with one warp. Returns whether the part and the table of sizes are
// valid. A part that the piece does not have is valid.
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
