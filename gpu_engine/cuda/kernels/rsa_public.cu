// SPDX-License-Identifier: Apache-2.0
// Public operations, and the check of private ones, with two lanes for each message.
//
// With the exponent 65537 an operation is 18 multiplications of numbers twice as long as a CRT
// half. That is 3 % of the private operation's products.
#include "gpu_engine/cuda/kernels/rsa.h"
#include "gpu_engine/cuda/kernels/rsa_power.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 64;
constexpr int messages_per_block = threads_per_block / 2;
constexpr int blocks_per_multiprocessor = 4;

// Lanes (rsa_power.cuh) that are two neighbouring threads of a warp. They synchronise only with
// each other, so a warp may have any number of active pairs.
struct ShuffleLanes {
  std::uint32_t mask;  // of the two lanes in their warp
  __device__ bool is_low() const { return threadIdx.x % 2 == 0; }
  __device__ std::uint32_t from_low(std::uint32_t word) const {
    return __shfl_sync(mask, word, 0, 2);
  }
  __device__ std::uint32_t from_high(std::uint32_t word) const {
    return __shfl_sync(mask, word, 1, 2);
  }
  __device__ void meet() const { __syncwarp(mask); }
};

template <int N>
struct Shared {
  std::uint32_t column[2 * N][messages_per_block];
  std::uint32_t modulus[modulus_in_registers<N> ? 1 : N][threads_per_block];
};

// Loads this lane's half of the number in a task's `in`. Returns whether the whole number is below
// the modulus.
template <int N>
__device__ bool load_half(Limbs<N>& half, const RsaTask& task, const std::uint32_t* modulus,
                          const ShuffleLanes& lanes) {
  const int own = lanes.is_low() ? 0 : N;
  Limbs<N> less;
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    less.at[j] = half.at[j] = load_limb(task.in, task.size, own + j);
  return subtract_pair(less, modulus + own, lanes) != 0;
}

enum class Use { apply, check };

// apply: raises the tasks' numbers, which are loaded into `numbers`. check: `numbers` are results
// of private operations; those that are right go to the tasks' `out`.
template <int N, Use use>
__global__ __launch_bounds__(threads_per_block, blocks_per_multiprocessor) void raise_messages(
    const RsaPublicWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
    std::uint32_t* numbers, std::uint32_t* bases, std::uint32_t* verdicts) {
  __shared__ Shared<N> shared;
  const std::uint32_t message = (blockIdx.x * threads_per_block + threadIdx.x) / 2;
  if (message >= count) return;
  const ShuffleLanes lanes = {3u << (threadIdx.x % 32 & ~1u)};
  const int own = lanes.is_low() ? 0 : N;
  const RsaTask& task = tasks[message];
  const RsaPublicWords<N>& key = keys[task.key];
  const LimbColumn number = {numbers + message, count};
  const LimbColumn own_number = {&number[own], count};
  const LimbColumn column = {&shared.column[0][threadIdx.x / 2], messages_per_block};

  Limbs<N> a;
  if constexpr (use == Use::apply) {
    load_half(a, task, key.modulus, lanes);
    copy_limbs(own_number, a);
    lanes.meet();
  }
  const std::uint64_t exponent = std::uint64_t{key.exponent[1]} << 32 | key.exponent[0];
  const auto raise = [&](const auto& m) {
    raise_public(a, number, key.r_squared, exponent, column, {bases + message, count}, m,
                 key.inverse, lanes);
  };
  if constexpr (modulus_in_registers<N>) {
    Limbs<N> m;
    copy_limbs(m, key.modulus + own);
    raise(m);
  } else {
    const LimbColumn m = {&shared.modulus[0][threadIdx.x], threads_per_block};
    for (int j = 0; j < N; ++j)
      m[j] = key.modulus[own + j];
    raise(m);
  }

  Limbs<N> in;
  bool good = load_half(in, task, key.modulus, lanes);
  if constexpr (use == Use::check) {
    std::uint32_t difference = 0;
    NACRE_UNROLL
    for (int j = 0; j < N; ++j)
      difference |= in.at[j] ^ a.at[j];
    good = both(difference == 0, lanes) && good;
    copy_limbs(a, own_number);
  }
  const std::uint32_t mask = good ? ~std::uint32_t{0} : 0;
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    store_limb(task.out, task.size, own + j, a.at[j] & mask);
  if (lanes.is_low()) verdicts[message] = good ? 1 : 0;
}

template <int N, Use use>
cudaError_t launch(const RsaPublicWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
                   std::uint32_t* numbers, std::uint32_t* bases, std::uint32_t* verdicts,
                   cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  raise_messages<N, use>
      <<<(count + messages_per_block - 1) / messages_per_block, threads_per_block, 0, stream>>>(
          keys, tasks, count, numbers, bases, verdicts);
  return cudaGetLastError();
}

}  // namespace

template <int N>
std::size_t rsa_public_workspace_size(std::uint32_t count) {
  return std::size_t{count} * 4 * 4 * N;
}

template <int N>
std::size_t rsa_check_workspace_size(std::uint32_t count) {
  return std::size_t{count} * 4 * 2 * N;
}

template <int N>
cudaError_t rsa_public(const RsaPublicWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
                       std::uint32_t* verdicts, void* workspace, cudaStream_t stream) {
  auto* const numbers = static_cast<std::uint32_t*>(workspace);
  return launch<N, Use::apply>(keys, tasks, count, numbers, numbers + std::size_t{2} * N * count,
                               verdicts, stream);
}

template <int N>
cudaError_t rsa_check(const RsaPublicWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
                      std::uint32_t* results, std::uint32_t* verdicts, void* workspace,
                      cudaStream_t stream) {
  return launch<N, Use::check>(keys, tasks, count, results, static_cast<std::uint32_t*>(workspace),
                               verdicts, stream);
}

#define NACRE_RSA_PUBLIC(N)                                                                   \
  template std::size_t rsa_public_workspace_size<N>(std::uint32_t);                           \
  template std::size_t rsa_check_workspace_size<N>(std::uint32_t);                            \
  template cudaError_t rsa_public<N>(const RsaPublicWords<N>*, const RsaTask*, std::uint32_t, \
                                     std::uint32_t*, void*, cudaStream_t);                    \
  template cudaError_t rsa_check<N>(const RsaPublicWords<N>*, const RsaTask*, std::uint32_t,  \
                                    std::uint32_t*, std::uint32_t*, void*, cudaStream_t);
NACRE_RSA_PUBLIC(16)
NACRE_RSA_PUBLIC(32)
NACRE_RSA_PUBLIC(48)
NACRE_RSA_PUBLIC(64)
#undef NACRE_RSA_PUBLIC

}  // namespace nacre::engine::cuda
