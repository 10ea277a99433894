// SPDX-License-Identifier: Apache-2.0
// Key expansion. One thread makes the FIPS 197 round keys of a key. One warp makes what a suite
// needs in addition: the matrices and powers of GHASH (for ghash.cu), or the states of HMAC and the
// round keys for IVs.
#include "gpu_engine/cuda/kernels/aes.cuh"
#include "gpu_engine/cuda/kernels/des.h"
#include "gpu_engine/cuda/kernels/gf128.cuh"
#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/sha256.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int cipher_threads = 128;
constexpr int suite_threads = 128;

__device__ std::uint32_t key_words_of(const RawKey& key) {
  return key.cipher_key_size == 16 || key.cipher_key_size == 24 ? key.cipher_key_size / 4 : 8;
}

__device__ std::uint32_t substitute_word(const SmallTables& tables, std::uint32_t word) {
  return substitute_column(tables, word, word, word, word);
}

__device__ uint4 unmix(uint4 key) {
  return make_uint4(unmix_column(key.x), unmix_column(key.y), unmix_column(key.z),
                    unmix_column(key.w));
}

// FIPS 197, 5.2, in little-endian words: calls write(round, key) for each round key in turn.
// Everything is in registers, since every index is a constant.
template <std::uint32_t key_words, typename Write>
__device__ void expand(const SmallTables& tables, const Byte* key, const Write& write) {
  constexpr std::uint32_t rounds = key_words + 6;
  std::uint32_t recent[key_words];  // the last words, word i at i % key_words
#pragma unroll
  for (std::uint32_t i = 0; i < key_words; ++i)
    recent[i] = load_bytes(key + 4 * i, 4);
  std::uint32_t constant = 1;
  uint4 round_key = {};
#pragma unroll
  for (std::uint32_t i = 0; i < 4 * (rounds + 1); ++i) {
    const std::uint32_t place = i % key_words;
    if (i >= key_words) {
      std::uint32_t last = recent[(i - 1) % key_words];
      if (place == 0) {
        last = substitute_word(tables, rotate_left(last, 24)) ^ constant;
        constant = times_x(constant);
      } else if (key_words == 8 && place == 4) {
        last = substitute_word(tables, last);
      }
      recent[place] ^= last;
    }
    if (i % 4 == 0) round_key.x = recent[place];
    if (i % 4 == 1) round_key.y = recent[place];
    if (i % 4 == 2) round_key.z = recent[place];
    if (i % 4 == 3) {
      round_key.w = recent[place];
      write(i / 4, round_key);
    }
  }
}

template <std::uint32_t count>
struct KeyWords {
  static constexpr std::uint32_t value = count;
};

// Calls work(KeyWords<key_words>()), so that the number is a constant for the compiler.
template <typename Work>
__device__ void with_key_words(std::uint32_t key_words, const Work& work) {
  if (key_words == 4)
    work(KeyWords<4>());
  else if (key_words == 6)
    work(KeyWords<6>());
  else
    work(KeyWords<8>());
}

// Neighbouring threads write neighbouring parts of a cache line. The equivalent inverse cipher uses
// the round keys in reverse order, with InvMixColumns applied to all but the first and the last.
template <KeyDirections directions>
__global__ void expand_ciphers(const RawKey* keys, std::uint32_t count, CipherKeyGroup* groups) {
  __shared__ std::uint32_t shared[256];
  const SmallTables tables(shared);
  const std::uint32_t index = blockIdx.x * cipher_threads + threadIdx.x;
  if (index >= count) return;
  CipherKeyGroup& out = groups[index / CipherKeyGroup::key_count];
  const std::uint32_t place = index % CipherKeyGroup::key_count;
  with_key_words(key_words_of(keys[index]), [&](auto words) {
    constexpr std::uint32_t key_words = decltype(words)::value;
    constexpr std::uint32_t rounds = key_words + 6;
    out.round_counts[place] = rounds;
    expand<key_words>(tables, keys[index].bytes, [&](std::uint32_t round, uint4 key) {
      const bool is_last = round == rounds;
      out.encrypt[is_last ? RoundKeys::last_round : round][place] = key;
      if (directions == KeyDirections::encrypt) return;
      const bool is_end = round == 0 || is_last;
      out.decrypt[round == 0 ? RoundKeys::last_round : rounds - round][place] =
          is_end ? key : unmix(key);
    });
  });
}

constexpr int hash_squares = 17;

// Writes H^(2^k) for k below hash_squares. All lanes of a warp call it and compute the same.
__device__ void write_squares(uint4 hash_key, std::uint32_t lane, uint4* squares) {
  uint4 square = hash_key;
#pragma unroll 1
  for (int log2 = 0; log2 < hash_squares; ++log2) {
    if (lane == 0) squares[log2] = square;
    square = gf128_multiply(square, square);
  }
  __syncwarp();
}

// Writes powers[k] = H^(k 2^log2). Each lane makes four of them.
__device__ void write_powers(const uint4* squares, int log2, std::uint32_t lane, uint4* powers) {
  static_assert(ghash_powers == 4 * 32);
  uint4 power = gf128_one();
#pragma unroll 1
  for (int bit = 0; bit < 5; ++bit) {
    if ((lane >> bit & 1) != 0) power = gf128_multiply(power, squares[log2 + bit]);
  }
#pragma unroll 1
  for (std::uint32_t k = lane; k < ghash_powers; k += 32) {
    powers[k] = power;
    power = gf128_multiply(power, squares[log2 + 5]);
  }
}

__device__ uint4 times_x_32(uint4 a) {
  const std::uint32_t out = a.w;
  return make_uint4(out ^ out >> 1 ^ out >> 2 ^ out >> 7, a.x ^ out << 31 ^ out << 30 ^ out << 25,
                    a.y, a.z);
}

// Writes the matrix of the multiplication by power, for blocks as they lie in memory. Lane i
// computes the row of input bit i of each word, x^e * power; a ballot turns rows into columns.
// place: the block's place in its group of four.
__device__ void write_matrix(uint4 power, int place, std::uint32_t lane, ExpandedSuiteKey& out) {
  // Within a byte the lowest bit is the highest power.
  const std::uint32_t exponent = lane / 8 * 8 + 7 - lane % 8;
  uint4 row = power;
  for (std::uint32_t i = 0; i < exponent; ++i)
    row = gf128_times_x(row);
#pragma unroll 1
  for (int word = 0; word < 4; ++word) {
    __syncwarp();
    const uint4 swapped = swap_bytes(row);
    const std::uint32_t outputs[4] = {swapped.x, swapped.y, swapped.z, swapped.w};
#pragma unroll
    for (int output = 0; output < 4; ++output) {
      std::uint32_t mine = 0;
      for (std::uint32_t bit = 0; bit < 32; ++bit) {
        const std::uint32_t column = __ballot_sync(all_lanes, outputs[output] >> bit & 1);
        if (lane == bit) mine = column;
      }
      // Output bit `lane` of word `output` is made by column n mod 2 of tile n / 2, among the
      // columns that the place `output` counts: see add_parities().
      const std::uint32_t n = 4 * (lane % 8) + lane / 8;
      const std::uint32_t tile = n / 2, column = 2 * output + n % 2;
      uint2& words = out.ghash_matrices[tile][word / 2][4 * column + place];
      (word % 2 == 0 ? words.x : words.y) = mine;
    }
    row = times_x_32(row);
  }
}

__global__ void expand_suites(const RawKey* keys, std::uint32_t count,
                              const CipherKeyGroup* ciphers, ExpandedSuiteKey* expanded) {
  __shared__ std::uint32_t shared[256];
  __shared__ uint4 all_squares[suite_threads / 32][hash_squares];
  const SmallTables tables(shared);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t index = (blockIdx.x * suite_threads + threadIdx.x) / 32;
  if (index >= count) return;
  const RawKey& key = keys[index];
  ExpandedSuiteKey& out = expanded[index];
  const std::uint32_t key_words = key_words_of(key);
  const std::uint32_t cipher_key_size = 4 * key_words;
  if (key.form == KeyForm::gcm) {
    const CipherKeyView cipher(ciphers, index);
    const uint4 hash_key = swap_bytes(
        encrypt_one_block(tables, cipher.encrypt(), cipher.round_count(), make_uint4(0, 0, 0, 0)));
    uint4* const squares = all_squares[threadIdx.x / 32];
    write_squares(hash_key, lane, squares);
    write_powers(squares, 2, lane, out.ghash_short_powers);
    write_powers(squares, 4, lane, out.ghash_long_powers);
    write_powers(squares, 9, lane, out.ghash_tile_powers);
    if (lane == 0) out.ghash_stride_power = squares[16];
    // H^4 to H: the block at place 0 has three blocks after it.
    uint4 power = hash_key;
#pragma unroll 1
    for (int place = 3; place >= 0; --place) {
      write_matrix(power, place, lane, out);
      power = gf128_multiply(power, hash_key);
    }
  } else if (key.form == KeyForm::ctr_hmac || key.form == KeyForm::cbc_hmac) {
    const bool chained = key.form == KeyForm::cbc_hmac;
    const Byte* const hmac_key = key.bytes + (chained ? 2 : 1) * cipher_key_size;
    if (lane == 0) write_hmac_state(hmac_key, hmac_inner_pad, out.hmac_inner);
    if (lane == 1) write_hmac_state(hmac_key, hmac_outer_pad, out.hmac_outer);
    if (lane == 2 && chained)
      with_key_words(key_words, [&](auto words) {
        expand<decltype(words)::value>(
            tables, key.bytes + cipher_key_size, [&](std::uint32_t round, uint4 key) {
              out.iv.at[round == decltype(words)::value + 6 ? RoundKeys::last_round : round] = key;
            });
      });
  }
}

static_assert(sizeof(RawKey::bytes) == 2 * 32 + hmac_key_size);

}  // namespace

cudaError_t expand_keys(const RawKey* keys, std::uint32_t count, KeyDirections directions,
                        KeyTable table, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (table.family != CipherFamily::aes)
    return des_expand_keys(keys, count, des_pass_count(table.family), table.des, table.suites,
                           stream);
  const auto kernel = directions == KeyDirections::both ? expand_ciphers<KeyDirections::both>
                                                        : expand_ciphers<KeyDirections::encrypt>;
  kernel<<<(count + cipher_threads - 1) / cipher_threads, cipher_threads, 0, stream>>>(
      keys, count, table.ciphers);
  if (table.suites != nullptr) {
    constexpr int keys_per_block = suite_threads / 32;
    expand_suites<<<(count + keys_per_block - 1) / keys_per_block, suite_threads, 0, stream>>>(
        keys, count, table.ciphers, table.suites);
  }
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
