// SPDX-License-Identifier: Apache-2.0
// The constants of the zstd format (RFC 8878) for the kernels, and how they read bits.
//
// Bits of FSE and Huffman streams are read from the end: a place in a stream is the count of bits
// below it, and what is read next lies just below. Bit 0 is the first bit of the aligned word that
// holds the stream's first byte (InputWords).
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"

namespace nacre::engine::cuda::zstd {

inline constexpr std::uint32_t frame_magic = 0xfd2fb528;
// Bounds of what is decoded here; the host decodes longer frames. A frame's window has the same
// bound as the host's decoder has for it.
inline constexpr std::uint32_t plain_size_max = 1u << 20;
inline constexpr std::uint32_t coded_size_max = 1u << 21;
inline constexpr std::uint32_t window_size_max = 1u << 20;
inline constexpr std::uint32_t block_size_max = 128u << 10;

enum class BlockKind : std::uint32_t { raw, rle, compressed, reserved };
enum class LiteralsKind : std::uint32_t { raw, rle, compressed, treeless };
enum class TableMode : std::uint32_t { predefined, rle, compressed, repeat };

inline constexpr std::uint32_t huffman_log_max = 11;
inline constexpr std::uint32_t huffman_symbol_count_max = 256;
inline constexpr std::uint32_t weight_log_max = 6;  // of the FSE table for Huffman weights
inline constexpr std::uint32_t weight_max = 12;

// The three FSE tables of sequences.
struct TableShape {
  std::uint32_t symbol_max;
  std::uint32_t log_max;
  std::uint32_t predefined_log;
};
inline constexpr TableShape literal_length_shape = {35, 9, 6};
inline constexpr TableShape offset_shape = {31, 8, 5};
inline constexpr TableShape match_length_shape = {52, 9, 6};
// An offset with a larger code reaches further back than plain_size_max.
inline constexpr std::uint32_t offset_code_max = 20;

// The distributions of predefined tables (RFC 8878, 3.1.1.3.2.2).
__constant__ constexpr std::int8_t predefined_literal_lengths[36] = {
    4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
    2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
__constant__ constexpr std::int8_t predefined_offsets[29] = {
    1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
__constant__ constexpr std::int8_t predefined_match_lengths[53] = {
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};

// The meaning of a length code: the smallest length, and the number of extra bits to add to it.
struct Length {
  std::uint32_t base;
  std::uint32_t extra_bits;
};

// Codes up to 15 are lengths; from 25 on each has one more bit than the one before it.
__device__ __forceinline__ Length literal_length(std::uint32_t code) {
  if (code < 16) return {code, 0};
  if (code >= 25) return {1u << (code - 19), code - 19};
  // 16 to 24: bases 16, 18, 20, 22, 24, 28, 32, 40, 48, and bits 1, 1, 1, 1, 2, 2, 3, 3, 4.
  const std::uint32_t at = code - 16;
  const std::uint32_t half = at < 4 ? 8 + at : at < 6 ? 4 + 2 * at : at < 8 ? 4 * at - 8 : 24;
  return {2 * half, at < 4 ? 1u : at < 6 ? 2u : at < 8 ? 3u : 4u};
}

// Codes up to 31 are lengths less 3; from 43 on each has one more bit than the one before it.
__device__ __forceinline__ Length match_length(std::uint32_t code) {
  if (code < 32) return {code + 3, 0};
  if (code >= 43) return {(1u << (code - 36)) + 3, code - 36};
  // 32 to 42: bases 35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, and bits 1, 1, 1, 1, 2, 2, 3, 3,
  // 4, 4, 5.
  const std::uint32_t at = code - 32;
  if (at < 4) return {35 + 2 * at, 1};
  if (at < 6) return {43 + 4 * (at - 4), 2};
  if (at < 8) return {51 + 8 * (at - 6), 3};
  if (at < 10) return {67 + 16 * (at - 8), 4};
  return {99, 5};
}

// The number of the highest bit that is set. bits is not 0.
__device__ __forceinline__ std::uint32_t highest_bit(std::uint32_t bits) {
  return 31 - static_cast<std::uint32_t>(__clz(static_cast<int>(bits)));
}

// The first count bits (0 … 31; more bits of the argument than the lowest five are ignored) of bits
// that are read from the highest one on; and the bits that follow them.
__device__ __forceinline__ std::uint32_t first_bits(std::uint32_t bits, std::uint32_t count) {
  return __funnelshift_l(bits, 0, count);
}
__device__ __forceinline__ std::uint32_t bits_after(std::uint32_t bits, std::uint32_t count) {
  return __funnelshift_l(0, bits, count);
}

// Bytes in global memory as the aligned words that hold them. There are no words before the first
// and after the last of them: such words are read as 0.
class InputWords {
 public:
  // size is not 0.
  __device__ __forceinline__ InputWords(const Byte* bytes, std::uint32_t size)
      : words_(bytes),
        first_bit_(words_.shift * 8),
        word_count_((words_.shift + size + 3) / 4),
        size_(size) {}

  __device__ __forceinline__ std::uint32_t word(std::int32_t index) const {
    return static_cast<std::uint32_t>(index) < word_count_ ? load(words_.words + index) : 0;
  }
  // The 32 bits from a place upwards.
  __device__ __forceinline__ std::uint32_t bits_from(std::uint32_t place) const {
    const auto index = static_cast<std::int32_t>(place / 32);
    return __funnelshift_r(word(index), word(index + 1), place);
  }
  __device__ __forceinline__ std::uint32_t first_bit() const { return first_bit_; }
  // How many bytes lie below a place. It is not below the first bit.
  __device__ __forceinline__ std::uint32_t bytes_below(std::uint32_t place) const {
    return (place - first_bit_ + 7) / 8;
  }
  // The place of the bit that ends a stream that is read from its end; 0 where there is none.
  __device__ __forceinline__ std::uint32_t end_mark() const {
    const std::uint32_t last_byte_at = first_bit_ + 8 * (size_ - 1);
    const std::uint32_t last = bits_from(last_byte_at) & 0xff;
    return last == 0 ? 0 : last_byte_at + highest_bit(last);
  }
  __device__ __forceinline__ std::uint32_t word_count() const { return word_count_; }

 private:
  const Words words_;
  const std::uint32_t first_bit_;
  const std::uint32_t word_count_;
  const std::uint32_t size_;
};

}  // namespace nacre::engine::cuda::zstd
