// SPDX-License-Identifier: Apache-2.0
// AES-256 as Masood's article develops it, step by step. A thread has one block and does the four
// transformations byte by byte, multiplying by tables of logarithms. The steps differ in where the
// tables, the schedule and the two states lie.
#include "gpu_engine/seeds/aes_constants.h"
#include "gpu_engine/seeds/cuda/device_run.h"

namespace nacre::engine::seeds {
namespace {

using cuda::check;

constexpr int rounds = 14;
constexpr int key_bytes = 32;
constexpr int schedule_bytes = 16 * (rounds + 1);
constexpr unsigned block_threads = 256;

struct ByteTables {
  std::uint8_t substitution[256], inverse[256], logarithm[256], power[512];
};
constexpr ByteTables make_byte_tables() {
  ByteTables tables = {};
  for (int i = 0; i < 256; ++i) {
    tables.substitution[i] = aes_constants.substitution[i];
    tables.inverse[i] = aes_constants.inverse[i];
    tables.logarithm[i] = aes_constants.logarithm[i];
  }
  for (int i = 0; i < 512; ++i)
    tables.power[i] = aes_constants.power[i];
  return tables;
}

__device__ const ByteTables global_tables = make_byte_tables();
__constant__ ByteTables constant_tables = make_byte_tables();
__constant__ std::uint8_t constant_schedule[schedule_bytes];
__constant__ std::uint8_t constant_key[key_bytes];

template <AesStep step>
__device__ __forceinline__ const ByteTables& tables() {
  if constexpr (step == AesStep::global_memory)
    return global_tables;
  else
    return constant_tables;
}

template <AesStep step>
__device__ __forceinline__ std::uint8_t times(std::uint8_t value, std::uint8_t factor) {
  const ByteTables& table = tables<step>();
  return value == 0 ? 0 : table.power[table.logarithm[value] + table.logarithm[factor]];
}

template <AesStep step, bool encrypts>
struct Rounds {
  static constexpr int bytes_at_once = step >= AesStep::unrolled ? 16 : 1;

  std::uint8_t* state;
  std::uint8_t* next;
  const std::uint8_t* schedule;

  __device__ __forceinline__ void add_key(int round) {
#pragma unroll bytes_at_once
    for (int i = 0; i < 16; ++i)
      state[i] ^= schedule[16 * round + i];
  }
  __device__ __forceinline__ void substitute() {
#pragma unroll bytes_at_once
    for (int i = 0; i < 16; ++i)
      state[i] =
          encrypts ? tables<step>().substitution[state[i]] : tables<step>().inverse[state[i]];
  }
  __device__ __forceinline__ void shift_rows() {
#pragma unroll bytes_at_once
    for (int i = 0; i < 16; ++i)
      next[i] = state[(i + (encrypts ? 4 : 12) * (i & 3)) & 15];
#pragma unroll bytes_at_once
    for (int i = 0; i < 16; ++i)
      state[i] = next[i];
  }
  __device__ __forceinline__ void mix_columns() {
#pragma unroll bytes_at_once
    for (int i = 0; i < 16; ++i) {
      const std::uint8_t a = state[i], b = state[(i & 12) | ((i + 1) & 3)],
                         c = state[(i & 12) | ((i + 2) & 3)], d = state[(i & 12) | ((i + 3) & 3)];
      next[i] = encrypts ? times<step>(a, 2) ^ times<step>(b, 3) ^ c ^ d
                         : times<step>(a, 14) ^ times<step>(b, 11) ^ times<step>(c, 13) ^
                               times<step>(d, 9);
    }
#pragma unroll bytes_at_once
    for (int i = 0; i < 16; ++i)
      state[i] = next[i];
  }
  __device__ __forceinline__ void run() {
    add_key(encrypts ? 0 : rounds);
#pragma unroll 1
    for (int round = 1; round < rounds; ++round) {
      if (encrypts) {
        substitute();
        shift_rows();
        mix_columns();
        add_key(round);
      } else {
        shift_rows();
        substitute();
        add_key(rounds - round);
        mix_columns();
      }
    }
    substitute();
    shift_rows();
    add_key(encrypts ? rounds : 0);
  }
};

__device__ void expand_key(std::uint8_t* schedule) {
  std::uint8_t round_constant = 1;
  for (int i = 0; i < key_bytes; ++i)
    schedule[i] = constant_key[i];
  for (int at = key_bytes; at < schedule_bytes; at += 4) {
    std::uint8_t word[4] = {schedule[at - 4], schedule[at - 3], schedule[at - 2], schedule[at - 1]};
    if (at % key_bytes == 0) {
      const std::uint8_t first = word[0];
      for (int i = 0; i < 3; ++i)
        word[i] = constant_tables.substitution[word[i + 1]];
      word[3] = constant_tables.substitution[first];
      word[0] ^= round_constant;
      round_constant = static_cast<std::uint8_t>(round_constant << 1);
    } else if (at % key_bytes == 16) {
      for (int i = 0; i < 4; ++i)
        word[i] = constant_tables.substitution[word[i]];
    }
    for (int i = 0; i < 4; ++i)
      schedule[at + i] = schedule[at - key_bytes + i] ^ word[i];
  }
}

template <AesStep step, bool encrypts>
__global__ void crypt(const Byte* in, Byte* out, std::uint64_t block_count,
                      const std::uint8_t* global_schedule) {
  constexpr bool is_shared = step >= AesStep::shared_memory;
  constexpr bool expands = step == AesStep::schedule_on_device;
  __shared__ std::uint8_t shared_states[is_shared ? 2 * 16 * block_threads : 1];
  __shared__ std::uint8_t shared_schedule[expands ? schedule_bytes : 1];
  if constexpr (expands) {
    if (threadIdx.x == 0) expand_key(shared_schedule);
    __syncthreads();
  }
  const std::uint64_t block = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (block >= block_count) return;
  std::uint8_t own_states[is_shared ? 1 : 2 * 16];
  Rounds<step, encrypts> aes;
  if constexpr (is_shared) {
    aes.state = shared_states + 16 * threadIdx.x;
    aes.next = shared_states + 16 * (block_threads + threadIdx.x);
  } else {
    aes.state = own_states;
    aes.next = own_states + 16;
  }
  if constexpr (expands)
    aes.schedule = shared_schedule;
  else if constexpr (step == AesStep::global_memory)
    aes.schedule = global_schedule;
  else
    aes.schedule = constant_schedule;
  for (int i = 0; i < 16; ++i)
    aes.state[i] = in[16 * block + i];
  aes.run();
  for (int i = 0; i < 16; ++i)
    out[16 * block + i] = aes.state[i];
}

using Kernel = void (*)(const Byte*, Byte*, std::uint64_t, const std::uint8_t*);

template <bool encrypts>
Kernel kernel_of(AesStep step) {
  switch (step) {
    case AesStep::global_memory:
      return crypt<AesStep::global_memory, encrypts>;
    case AesStep::constant_memory:
      return crypt<AesStep::constant_memory, encrypts>;
    case AesStep::shared_memory:
      return crypt<AesStep::shared_memory, encrypts>;
    case AesStep::unrolled:
      return crypt<AesStep::unrolled, encrypts>;
    case AesStep::schedule_on_device:
      return crypt<AesStep::schedule_on_device, encrypts>;
  }
  return nullptr;
}

}  // namespace

Result<CryptTimes> aes_on_device(AesStep step, bool encrypts, ByteView key, ByteView in,
                                 MutableByteView out, unsigned repetitions) {
  NACRE_TRY(need_device());
  if (key.size() != key_bytes || in.empty() || in.size() % 16 != 0 || out.size() < in.size())
    return fail(
        ErrorCode::invalid_argument,
        "the key must have 32 bytes, and the input whole blocks of 16 that fit into the output");
  std::uint8_t schedule[aes_schedule_bytes_max] = {};
  expand_aes_key(key.data(), key.size(), schedule);
  NACRE_TRY(check(cudaMemcpyToSymbol(constant_schedule, schedule, schedule_bytes),
                  "copying a key to the device"));
  NACRE_TRY(check(cudaMemcpyToSymbol(constant_key, key.data(), key_bytes),
                  "copying a key to the device"));
  NACRE_ASSIGN(const cuda::DeviceMemory d_schedule, copy_to_device(schedule));
  const Kernel kernel = encrypts ? kernel_of<true>(step) : kernel_of<false>(step);
  const std::uint64_t blocks = in.size() / 16;
  return time_cipher(in, out, repetitions, [&](const Byte* d_in, Byte* d_out, cudaStream_t stream) {
    kernel<<<static_cast<unsigned>((blocks + block_threads - 1) / block_threads), block_threads, 0,
             stream>>>(d_in, d_out, blocks, d_schedule.data());
    return cudaGetLastError();
  });
}

}  // namespace nacre::engine::seeds
