// SPDX-License-Identifier: Apache-2.0
// Encodes TIFF LZW (docs/FORMAT.md): one warp encodes one part of a piece. The bytes equal those of
// gpu_engine/codec/lzw.cpp.
//
// The plain loop:
//
//   string = the first byte;
//   for each further byte:
//     if the table has string + byte: string = that entry;
//     else: put string's code, add string + byte to the table, string = byte;
//   put string's code;
//
// Which string a byte continues depends on the look-up for the byte before it. So one lane finds
// the strings, and the speed depends on two things: how long a look-up takes, and how many parts
// are in flight. The smaller the table is, the more parts fit. The steps from there:
//
// 1. A smaller table. The CPU's table has 8,192 buckets with the two strings that were added last:
//    64 KiB. Here a bucket is only the last string, and the entry of that string names the one
//    before it:
//
//      heads   u16[8192]   by bucket: the string that was added last
//      strings u32[3837]   by string: the string that it continues, the byte that it adds, and the
//                          string that its bucket had before
//
//    That is 31 KiB, so seven parts share a multiprocessor.
// 2. A shorter wait. A look-up is two loads, but only the first is waited for: the bucket's string
//    is assumed to be the right one, so that the next look-up begins while it is compared. If it is
//    wrong and the current string ends, the next look-up is for the byte that ends it and the byte
//    after. Both bytes are known in advance, so that look-up is also made.
// 3. Codes by all lanes. The codes follow from the strings in the order in which they are made. A
//    code's width follows from its index, so each lane can make a word of the output.
//
// By count, 924 parts in flight at some 70 cycles a byte would give 20 GB/s. Measured on an H200,
// 2026-11-22, 64 KiB pieces of Silesia: 6.9 and 7.1 GB/s with 512 and 10,000 pieces, which is 240
// cycles a byte. Most of these go to the end of a string: some 110 instructions, each of which
// waits for the one before.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"
#include "gpu_engine/cuda/kernels/lzw_format.cuh"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda::lzw {

inline constexpr std::uint32_t clear_after_codes = 3836;
// No code is wider than 12 bits, and there are no more codes than bytes, except for the clear codes
// and the end code; whole words are written.
inline constexpr std::uint32_t part_room =
    ((part_size_max + 1 + part_size_max / clear_after_codes + 1) * width_max_bits / 8 + 4 + 15) /
    16 * 16;

struct alignas(16) EncoderMemory {
  static constexpr std::uint32_t bucket_count_log = 13;
  static constexpr std::uint32_t head_vectors = (2u << bucket_count_log) / sizeof(uint4);

  uint4 heads[head_vectors];
  // Entries of the strings from 257 on (257 stands for no string). The upper 20 bits are the string
  // that is continued and the byte; the lower 12 are the string that the bucket had before.
  std::uint32_t strings[1 + clear_after_codes];
};

// Finds the strings of a part. Per lane, except for clear().
class Finder {
 public:
  __device__ Finder(EncoderMemory& memory, const Byte* plain, std::uint32_t size)
      : heads_(reinterpret_cast<std::uint16_t*>(memory.heads)),
        strings_(memory.strings),
        plain_(plain),
        size_(size),
        string_(byte(0)) {}

  // All lanes call it.
  __device__ static void clear(EncoderMemory& memory) {
    constexpr std::uint32_t none_twice = no_string << 16 | no_string;
    for (std::uint32_t i = this_lane(); i < EncoderMemory::head_vectors; i += lane_count)
      memory.heads[i] = make_uint4(none_twice, none_twice, none_twice, none_twice);
    // This entry continues string 4095, which is never made, so it is never found.
    if (this_lane() == 0) memory.strings[0] = 0xfffff000 | no_string;
  }

  // Finds strings until a clear code is due or the part ends, and returns the number of codes. Each
  // code is the upper 12 bits of an entry of strings[], from the second entry on.
  __device__ std::uint32_t run() {
    last_ = no_string;
    find_most();
    while (last_ != last_before_clear && at_ + 1 < size_) {
      const Probe here = probe(string_, byte(at_ + 1));
      const std::uint32_t found = find(here, entry(here.head));
      ++at_;
      if (found != no_string) {
        string_ = found;
      } else {
        add(here);
        string_ = byte(at_);
      }
    }
    if (last_ == last_before_clear) return clear_after_codes;
    strings_[++last_ - no_string] = string_ << 20;
    ended_ = true;
    return last_ - no_string;
  }

  __device__ bool ended() const { return ended_; }

 private:
  static constexpr std::uint32_t no_string = end_code;
  static constexpr std::uint32_t last_before_clear = no_string + clear_after_codes;

  // A string with one more byte, which may go into the table.
  struct Probe {
    std::uint32_t key;
    std::uint32_t bucket;
    std::uint32_t head;
  };

  __device__ std::uint32_t byte(std::uint32_t i) const {
    __builtin_assume(__isGlobal(plain_));
    return i < size_ ? plain_[i] : 0;
  }
  __device__ Probe probe(std::uint32_t string, std::uint32_t next_byte) const {
    const std::uint32_t key = string << 8 | next_byte;
    const std::uint32_t bucket = key * 0x9e3779b1u >> (32 - EncoderMemory::bucket_count_log);
    return {key, bucket, heads_[bucket]};
  }
  __device__ std::uint32_t entry(std::uint32_t string) const {
    return strings_[string - no_string];
  }
  __device__ static bool is_of(std::uint32_t entry, std::uint32_t key) {
    return (entry ^ key << 12) < 1u << 12;
  }
  // Returns the one of the bucket's two strings that has the key, or no_string.
  __device__ std::uint32_t find(const Probe& probe, std::uint32_t head_entry) const {
    if (is_of(head_entry, probe.key)) return probe.head;
    const std::uint32_t before = head_entry & 0xfff;
    return before != no_string && is_of(entry(before), probe.key) ? before : no_string;
  }
  __device__ void add(const Probe& probe) {
    ++last_;
    strings_[last_ - no_string] = probe.key << 12 | probe.head;
    heads_[probe.bucket] = static_cast<std::uint16_t>(last_);
  }

  // Runs as long as two bytes follow the string and no clear code is due.
  __device__ void find_most() {
    std::uint32_t one = byte(at_ + 1);  // the bytes after the string
    std::uint32_t two = byte(at_ + 2);
    std::uint32_t three = byte(at_ + 3);
    Probe here = probe(string_, one);
    while (at_ + 2 < size_) {
      const Probe next = probe(here.head, two);  // right if here.head is the string
      const Probe pair = probe(one, two);        // right if there is no such string
      const std::uint32_t here_entry = entry(here.head);
      const std::uint32_t pair_entry = entry(pair.head);
      const std::uint32_t four = byte(at_ + 4);
      if (is_of(here_entry, here.key)) {
        string_ = here.head;
        here = next;
        ++at_;
        one = two;
        two = three;
        three = four;
        continue;
      }
      const std::uint32_t five = byte(at_ + 5);
      const std::uint32_t older = find(here, here_entry);
      if (older != no_string) {
        string_ = older;
        ++at_;
        one = two;
        two = three;
        three = four;
      } else {
        add(here);
        ++at_;
        // The entry that was just added may have changed the bucket of pair.
        if (last_ == last_before_clear || pair.bucket == here.bucket) {
          string_ = one;
          if (last_ == last_before_clear) return;
          one = two;
          two = three;
          three = four;
        } else {
          string_ = find(pair, pair_entry);
          ++at_;
          if (string_ == no_string) {
            add(pair);
            string_ = two;
            if (last_ == last_before_clear) return;
          }
          one = three;
          two = four;
          three = five;
        }
      }
      here = probe(string_, one);
    }
  }

  std::uint16_t* const heads_;
  std::uint32_t* const strings_;
  const Byte* const plain_;
  const std::uint32_t size_;
  std::uint32_t at_ = 0;            // index of the last byte of string_
  std::uint32_t string_;            // the string of the bytes that have no code yet
  std::uint32_t last_ = no_string;  // the last string made since the last clear code
  bool ended_ = false;
};

// Writes codes as bits, the highest first. All lanes call it together.
class CodeWriter {
 public:
  // to: aligned to 4, part_room bytes.
  __device__ explicit CodeWriter(std::uint32_t* to) : to_(to) {}

  // Writes one code: its lowest bits.
  __device__ void put(std::uint32_t code, std::uint32_t width) {
    const std::uint64_t bits = std::uint64_t{pending_} << 32 | std::uint64_t{code}
                                                                   << (64 - width - at_bit_ % 32);
    advance(static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits), width);
  }

  // Writes the first count codes of a section, which are the upper 12 bits of strings[1] and on.
  // Each lane makes words.
  __device__ void put_section(const std::uint32_t* strings, std::uint32_t count) {
    const std::uint32_t begin = at_bit_;
    const std::uint32_t end = begin + code_place(count);
    const std::uint32_t last_word = end / 32;
    for (std::uint32_t first = begin / 32; first <= last_word; first += lane_count) {
      const std::uint32_t word = first + this_lane();
      std::uint32_t bits = 0;
      if (word <= last_word) bits = word_of(strings, count, begin, word);
      if (word == begin / 32) bits |= pending_;
      if (word < last_word) to_[word] = swapped(bits);
      if (last_word - first < lane_count)
        pending_ = __shfl_sync(all_lanes, bits, static_cast<int>(last_word - first));
    }
    at_bit_ = end;
  }

  // Writes the last word and returns the size in bytes.
  __device__ std::uint32_t finish() {
    if (this_lane() == 0 && at_bit_ % 32 != 0) to_[at_bit_ / 32] = swapped(pending_);
    return (at_bit_ + 7) / 8;
  }

 private:
  __device__ void advance(std::uint32_t word, std::uint32_t behind, std::uint32_t width) {
    const std::uint32_t before = at_bit_;
    at_bit_ += width;
    pending_ = word;
    if (at_bit_ / 32 == before / 32) return;
    if (this_lane() == 0) to_[before / 32] = swapped(word);
    pending_ = behind;
  }

  // The bits of a section's codes in word `word` of the output. begin: the bit at which the section
  // begins. Per lane.
  __device__ static std::uint32_t word_of(const std::uint32_t* strings, std::uint32_t count,
                                          std::uint32_t begin, std::uint32_t word) {
    const std::uint32_t from = max(32 * word, begin) - begin;  // of the section's bits
    std::uint32_t j = code_at(from);
    std::uint32_t place = begin + code_place(j);
    std::uint32_t bits = 0;
    while (j < count && place < 32 * word + 32) {
      const std::uint32_t width = code_width(j);
      const std::uint32_t code = strings[1 + j] >> 20;
      // How many bits lie between the code's end and the word's end.
      const auto up = static_cast<std::int32_t>(32 * word + 32 - place - width);
      bits |= up >= 0 ? code << up : code >> -up;
      place += width;
      ++j;
    }
    return bits;
  }

  // The index of the code to which bit i of a section belongs. Per lane.
  __device__ static std::uint32_t code_at(std::uint32_t i) {
    std::uint32_t width = width_min_bits;
    std::uint32_t j = 0;      // index of the first code of that width
    std::uint32_t place = 0;  // the bit at which it begins
    for (std::uint32_t wider = 512 - first_string; wider < 2048; wider = 2 * wider + first_string) {
      const std::uint32_t wider_place = place + (wider - j) * width;
      if (i < wider_place) break;
      place = wider_place;
      j = wider;
      ++width;
    }
    return j + (i - place) / width;
  }

  __device__ static std::uint32_t swapped(std::uint32_t word) {
    return __byte_perm(word, 0, 0x0123);
  }

  std::uint32_t* const to_;
  std::uint32_t at_bit_ = 0;
  std::uint32_t pending_ = 0;  // the bits of the last word, when it is not full
};

// Encodes a part of 1 … 8192 plain bytes with one warp. to: aligned to 4, part_room bytes. Returns
// the size of the code in bytes, in all lanes.
inline __device__ std::uint32_t encode_part(EncoderMemory& memory, const Byte* plain,
                                            std::uint32_t size, std::uint32_t* to) {
  CodeWriter writer(to);
  writer.put(clear_code, width_min_bits);
  Finder finder(memory, plain, size);
  while (true) {
    Finder::clear(memory);
    __syncwarp();
    std::uint32_t count = 0;
    if (this_lane() == 0) count = finder.run();
    __syncwarp();
    count = __shfl_sync(all_lanes, count, 0);
    const bool ended = __shfl_sync(all_lanes, static_cast<int>(finder.ended()), 0) != 0;
    writer.put_section(memory.strings, count);
    if (count == clear_after_codes) writer.put(clear_code, width_max_bits);
    if (ended) {
      writer.put(end_code, count == clear_after_codes ? width_min_bits : code_width(count));
      return writer.finish();
    }
    __syncwarp();
  }
}

}  // namespace nacre::engine::cuda::lzw
