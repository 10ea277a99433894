// SPDX-License-Identifier: Apache-2.0
// 32 words of 32 bits, transposed in registers: bit j of word i becomes bit i of word j.
//
// Five steps exchange bits of words that are 16, 8, 4, 2 and 1 apart. The first two move whole
// bytes (two PRMT a pair of words), the others take two shifts and two LOP3.
#pragma once

#include "gpu_engine/cuda/kernels/lut3.h"

namespace nacre::engine::cuda {

// Bytes of the pair (b, a), of which a's are 0 to 3: byte i of the result is the one that nibble i
// of selector names.
template <std::uint32_t selector>
NACRE_HOST_DEVICE inline std::uint32_t pick_bytes(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, selector);
#else
  const std::uint64_t pair = std::uint64_t{b} << 32 | a;
  std::uint32_t picked = 0;
  for (int i = 0; i < 4; ++i)
    picked |= static_cast<std::uint32_t>(pair >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return picked;
#endif
}

// a's bits where mask is set, else b's.
template <std::uint32_t mask>
NACRE_HOST_DEVICE inline std::uint32_t select_bits(std::uint32_t a, std::uint32_t b) {
  return lut3<0xca>(mask, a, b);
}

template <int distance>
NACRE_HOST_DEVICE inline void exchange_bits(std::uint32_t& a, std::uint32_t& b) {
  const std::uint32_t low = a, high = b;
  if constexpr (distance == 16) {
    a = pick_bytes<0x5410>(low, high);
    b = pick_bytes<0x7632>(low, high);
  } else if constexpr (distance == 8) {
    a = pick_bytes<0x6240>(low, high);
    b = pick_bytes<0x7351>(low, high);
  } else {
    constexpr std::uint32_t mask = distance == 4   ? 0x0f0f0f0f
                                   : distance == 2 ? 0x33333333
                                                   : 0x55555555;
    a = select_bits<mask>(low, high << distance);
    b = select_bits<mask>(low >> distance, high);
  }
}

template <int distance, std::size_t size>
NACRE_HOST_DEVICE inline void exchange_at_distance(std::uint32_t (&words)[size], int first) {
  NACRE_UNROLL
  for (int i = 0; i < 32; ++i) {
    if ((i & distance) == 0) exchange_bits<distance>(words[first + i], words[first + i + distance]);
  }
}

// The 32 words from first on.
template <std::size_t size>
NACRE_HOST_DEVICE inline void transpose_bits(std::uint32_t (&words)[size], int first) {
  exchange_at_distance<16>(words, first);
  exchange_at_distance<8>(words, first);
  exchange_at_distance<4>(words, first);
  exchange_at_distance<2>(words, first);
  exchange_at_distance<1>(words, first);
}

}  // namespace nacre::engine::cuda
