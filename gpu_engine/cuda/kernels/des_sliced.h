// SPDX-License-Identifier: Apache-2.0
// DES on 32 blocks at a time in one thread's registers: word n of the state holds bit n of each
// block. Slicing makes permutations free, since they only rename words. An S-box becomes a circuit
// of functions of three bits (des_sboxes.h); one LOP3 computes such a function for 32 blocks.
//
// The plain round of FIPS 46-3 for one block:
//
//   for (n = 0; n < 32; ++n) left[n] ^= P(S(E(right) ^ key))[n];  exchange the halves
//
// Sliced, its operations are: 48 XORs for the key, the S-boxes, and 32 XORs into left. The key
// costs 16 instead of 48, because the key's middle bits are part of the state (des_key.h). They are
// a third operand of the XOR into left. So a round is 203 LOP3 for the S-boxes, 16 for the key and
// 32 to combine.
//
// Blocks come in and go out by transposition: 32 words of 32 bits in registers, of which bit j of
// word i becomes bit i of word j. The plain way moves 1,024 bits one by one. Here five steps
// exchange bits between words that are 16, 8, 4, 2 and 1 apart. The first two steps move whole
// bytes (two PRMT for a pair of words); the others take two shifts and two LOP3.
#pragma once

#include "gpu_engine/cuda/kernels/des_key.h"
#include "gpu_engine/cuda/kernels/des_sboxes.h"
#include "gpu_engine/cuda/kernels/lut3.h"

namespace nacre::engine::cuda {

// Picks four of the eight bytes of a (numbers 0 to 3) and b (4 to 7): nibble i of selector is the
// number of byte i of the result.
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

// Transposes the 32 words from first on.
template <std::size_t size>
NACRE_HOST_DEVICE inline void transpose_bits(std::uint32_t (&words)[size], int first) {
  exchange_at_distance<16>(words, first);
  exchange_at_distance<8>(words, first);
  exchange_at_distance<4>(words, first);
  exchange_at_distance<2>(words, first);
  exchange_at_distance<1>(words, first);
}

inline constexpr int blocks_per_slice = 32;

// The halves of 32 blocks: word n holds bit n (from 0) of each half block.
struct DesSlices {
  std::uint32_t left[32], right[32];
};

// The masks from the key that one S-box needs in a round (des_key.h).
struct DesBoxMasks {
  std::uint32_t folds[4];  // for its outputs
  std::uint32_t first, last;
};

// Expands a schedule's bits into masks when they are needed: for threads that have a key each.
class PackedDesMasks {
 public:
  NACRE_HOST_DEVICE explicit PackedDesMasks(const DesSchedule& schedule) : schedule_(&schedule) {}

  struct Round {
    DesRoundMasks bits;
    template <int box>
    NACRE_HOST_DEVICE DesBoxMasks box_masks() const {
      return {{spread<4 * box>(bits.folds), spread<4 * box + 1>(bits.folds),
               spread<4 * box + 2>(bits.folds), spread<4 * box + 3>(bits.folds)},
              spread<2 * box>(bits.edges),
              spread<2 * box + 1>(bits.edges)};
    }
  };
  NACRE_HOST_DEVICE Round round(int number) const { return {schedule_->rounds[number]}; }
  template <int bit>
  NACRE_HOST_DEVICE std::uint32_t whitening(int pass) const {
    return spread<bit>(schedule_->whitening[pass]);
  }

 private:
  template <int bit>
  NACRE_HOST_DEVICE static std::uint32_t spread(std::uint32_t bits) {
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(bits << (31 - bit)) >> 31);
  }
  const DesSchedule* schedule_;
};

// Calls work(Index<i>()) for each i from 0 to count - 1, so that i is a constant for the compiler.
template <int number>
struct Index {
  static constexpr int value = number;
};
template <int count, typename Work>
NACRE_HOST_DEVICE inline void for_each_index(const Work& work) {
  if constexpr (count > 0) {
    for_each_index<count - 1>(work);
    work(Index<count - 1>());
  }
}

// target ^= f(input), with the round's part of the key.
template <typename Round>
NACRE_HOST_DEVICE inline void run_des_round(const std::uint32_t (&input)[32],
                                            std::uint32_t (&target)[32], const Round& key) {
  for_each_index<8>([&](auto index) {
    constexpr int box = decltype(index)::value;
    const DesBoxMasks masks = key.template box_masks<box>();
    std::uint32_t out[4];
    des_sbox<box>(input[(4 * box + 31) % 32] ^ masks.first, input[4 * box], input[4 * box + 1],
                  input[4 * box + 2], input[4 * box + 3], input[(4 * box + 4) % 32] ^ masks.last,
                  out);
    for_each_index<4>([&](auto output) {
      constexpr int o = decltype(output)::value;
      constexpr int n = des_bit_of_output(4 * box + o);
      target[n] = xor3(target[n], out[o], masks.folds[o]);
    });
  });
}

// All passes over 32 blocks, without the initial permutation and its inverse: left and right become
// the preoutput's halves. pass_count: 1, or 3 for 3DES.
template <typename Masks>
NACRE_HOST_DEVICE inline void run_des_passes(DesSlices& slices, const Masks& masks,
                                             int pass_count) {
  std::uint32_t(&left)[32] = slices.left;
  std::uint32_t(&right)[32] = slices.right;
  NACRE_NO_UNROLL
  for (int pass = 0; pass < pass_count; ++pass) {
    for_each_index<32>([&](auto n) {
      right[decltype(n)::value] ^= masks.template whitening<decltype(n)::value>(pass);
    });
    NACRE_NO_UNROLL
    for (int round = 0; round < des_rounds_per_pass; round += 2) {
      run_des_round(right, left, masks.round(des_rounds_per_pass * pass + round));
      run_des_round(left, right, masks.round(des_rounds_per_pass * pass + round + 1));
    }
    // FIPS 46-3 does not exchange the halves after the last round. But the next pass begins with
    // the second half, and the standard calls that half the preoutput's first.
    NACRE_UNROLL
    for (int n = 0; n < 32; ++n) {
      const std::uint32_t kept = left[n];
      left[n] = right[n];
      right[n] = kept;
    }
  }
  for_each_index<32>([&](auto n) {
    right[decltype(n)::value] ^= masks.template whitening<decltype(n)::value>(pass_count);
  });
}

// After blocks were loaded as two little-endian words each, and the first and the second words were
// transposed: the index of the word that holds bit n (from 1, FIPS 46-3) of the blocks.
NACRE_HOST_DEVICE constexpr int des_word_of_bit(int n) {
  return (n - 1) / 32 * 32 + (n - 1) / 8 % 4 * 8 + 7 - (n - 1) % 8;
}
// Which bit of the block (from 1) is at place k (from 0) after the initial permutation.
NACRE_HOST_DEVICE constexpr int des_initial_permutation(int k) {
  const int row = k / 8, column = k % 8;
  return (row < 4 ? 58 + 2 * row : 57 + 2 * (row - 4)) - 8 * column;
}

// words: block j's first word at j and its second at 32 + j.
NACRE_HOST_DEVICE inline void slice_blocks(std::uint32_t (&words)[64], DesSlices& slices) {
  transpose_bits(words, 0);
  transpose_bits(words, 32);
  for_each_index<32>([&](auto index) {
    constexpr int k = decltype(index)::value;
    slices.left[k] = words[des_word_of_bit(des_initial_permutation(k))];
    slices.right[k] = words[des_word_of_bit(des_initial_permutation(32 + k))];
  });
}

NACRE_HOST_DEVICE inline void unslice_blocks(const DesSlices& slices, std::uint32_t (&words)[64]) {
  for_each_index<32>([&](auto index) {
    constexpr int k = decltype(index)::value;
    words[des_word_of_bit(des_initial_permutation(k))] = slices.left[k];
    words[des_word_of_bit(des_initial_permutation(32 + k))] = slices.right[k];
  });
  transpose_bits(words, 0);
  transpose_bits(words, 32);
}

// Which blocks a thread has: place(j) is how many blocks its block j lies after its block 0. Either
// all are neighbours, or 32 threads take pairs of neighbours in turn.
struct NeighbouringBlocks {
  NACRE_HOST_DEVICE static constexpr std::uint32_t place(int j) {
    return static_cast<std::uint32_t>(j);
  }
};
struct InterleavedBlocks {
  NACRE_HOST_DEVICE static constexpr std::uint32_t place(int j) {
    return static_cast<std::uint32_t>(j / 2 * 64 + j % 2);
  }
};

// Makes 32 sliced blocks of the counters first + Blocks::place(j). They are added bit by bit, from
// the lowest bit on: some 220 instructions. Adding first and then transposing would take 540.
template <typename Blocks>
NACRE_HOST_DEVICE inline void slice_counters(std::uint64_t first, DesSlices& slices) {
  const auto low = static_cast<std::uint32_t>(first);
  const auto high = static_cast<std::uint32_t>(first >> 32);
  std::uint32_t carry = 0;
  std::uint32_t bits[64];  // bit n of the block, from 1, at n - 1
  for_each_index<64>([&](auto index) {
    constexpr int weight = decltype(index)::value;
    constexpr std::uint32_t places = [] {
      std::uint32_t mask = 0;
      for (int j = 0; weight < 32 && j < blocks_per_slice; ++j)
        mask |= (Blocks::place(j) >> weight % 32 & 1) << j;
      return mask;
    }();
    const std::uint32_t word = weight < 32 ? low : high;
    const auto bit =
        static_cast<std::uint32_t>(static_cast<std::int32_t>(word << (31 - weight % 32)) >> 31);
    bits[63 - weight] = xor3(bit, places, carry);
    carry = lut3<0xe8>(bit, places, carry);
  });
  for_each_index<32>([&](auto index) {
    constexpr int k = decltype(index)::value;
    slices.left[k] = bits[des_initial_permutation(k) - 1];
    slices.right[k] = bits[des_initial_permutation(32 + k) - 1];
  });
}

}  // namespace nacre::engine::cuda
