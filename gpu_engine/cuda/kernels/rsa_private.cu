// SPDX-License-Identifier: Apache-2.0
// Private operations. One thread computes one CRT half: a message's power modulo p or modulo q.
// Then one thread for each message combines its two halves, and two lanes check the result
// (rsa_public.cu).
#include "gpu_engine/cuda/kernels/rsa.h"
#include "gpu_engine/cuda/kernels/rsa_power.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 64;
// The most blocks for which there are enough registers: a thread takes 255.
constexpr int blocks_per_multiprocessor = 4;
constexpr int window_bits = 4;
constexpr int table_entries = 1 << window_bits;

// The arrays of a workspace. The same limbs of neighbouring threads are adjacent (LimbColumn).
template <int N>
struct Workspace {
  std::uint32_t* table;      // table_entries * N limbs for each half
  std::uint32_t* residues;   // N limbs for each half
  std::uint32_t* decrypted;  // 2 N limbs for each message; before, the number in the task's `in`
  Byte* check;

  static std::size_t size(std::uint32_t count) {
    return std::size_t{count} * 4 * (2 * table_entries * N + 2 * N + 2 * N) +
           rsa_check_workspace_size<N>(count);
  }
  Workspace(void* memory, std::uint32_t count) {
    table = static_cast<std::uint32_t*>(memory);
    residues = table + std::size_t{2} * table_entries * N * count;
    decrypted = residues + std::size_t{2} * N * count;
    check = reinterpret_cast<Byte*>(decrypted + std::size_t{2} * N * count);
  }
};

// The shared memory of a block: a column for each thread.
template <int N>
struct Shared {
  std::uint32_t column[N][threads_per_block];
  std::uint32_t modulus[modulus_in_registers<N> ? 1 : N][threads_per_block];

  __device__ LimbColumn own_column() { return {&column[0][threadIdx.x], threads_per_block}; }
};

// Calls function with the modulus in registers if it fits there, else with a column in shared
// memory.
template <int N, typename Function>
__device__ __forceinline__ void with_modulus(Shared<N>& shared, const std::uint32_t* modulus,
                                             const Function& function) {
  if constexpr (modulus_in_registers<N>) {
    Limbs<N> m;
    copy_limbs(m, modulus);
    function(m);
  } else {
    const LimbColumn m = {&shared.modulus[0][threadIdx.x], threads_per_block};
    for (int j = 0; j < N; ++j)
      m[j] = modulus[j];
    function(m);
  }
}

template <int N>
__global__ void load_numbers(const RsaTask* tasks, std::uint32_t count, std::uint32_t* numbers) {
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= 2 * N * count) return;
  const RsaTask& task = tasks[at % count];
  numbers[at] = load_limb(task.in, task.size, at / count);
}

template <int N>
__global__ __launch_bounds__(threads_per_block, blocks_per_multiprocessor) void raise_halves(
    const RsaPrivateWords<N>* keys, std::uint32_t exponent_bits, const RsaTask* tasks,
    std::uint32_t count, Workspace<N> workspace) {
  __shared__ Shared<N> shared;
  const std::uint32_t thread = blockIdx.x * threads_per_block + threadIdx.x;
  if (thread >= 2 * count) return;
  const std::uint32_t message = thread % count;
  const RsaHalfWords<N>& key = keys[tasks[message].key].halves[thread / count];
  const LimbColumn table = {workspace.table + thread, 2 * count};
  with_modulus(shared, key.modulus, [&](const auto& m) {
    Limbs<N> a;
    raise<N, window_bits>(a, LimbColumn{workspace.decrypted + message, count}, key.r_squared,
                          key.exponent, exponent_bits, shared.own_column(), table, m, key.inverse);
    copy_limbs(LimbColumn{workspace.residues + thread, 2 * count}, a);
  });
}

template <int N>
__global__ __launch_bounds__(threads_per_block) void recombine_halves(
    const RsaPrivateWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
    Workspace<N> workspace) {
  __shared__ Shared<N> shared;
  const std::uint32_t message = blockIdx.x * threads_per_block + threadIdx.x;
  if (message >= count) return;
  const RsaPrivateWords<N>& key = keys[tasks[message].key];
  const RsaHalfWords<N>& p = key.halves[0];
  with_modulus(shared, p.modulus, [&](const auto& m) {
    recombine<N>(LimbColumn{workspace.decrypted + message, count},
                 LimbColumn{workspace.residues + message, 2 * count},
                 LimbColumn{workspace.residues + count + message, 2 * count}, m, p.inverse,
                 p.r_squared, key.halves[1].modulus, key.q_inverse, shared.own_column());
  });
}

}  // namespace

template <int N>
std::size_t rsa_private_workspace_size(std::uint32_t count) {
  return Workspace<N>::size(count);
}

template <int N>
cudaError_t rsa_private(const RsaPublicWords<N>* public_keys, const RsaPrivateWords<N>* keys,
                        std::uint32_t exponent_bits, const RsaTask* tasks, std::uint32_t count,
                        std::uint32_t* verdicts, void* memory, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const Workspace<N> workspace(memory, count);
  constexpr std::uint32_t load_threads = 256;
  load_numbers<N><<<(2 * N * count + load_threads - 1) / load_threads, load_threads, 0, stream>>>(
      tasks, count, workspace.decrypted);
  const std::uint32_t halves = 2 * count;
  raise_halves<N>
      <<<(halves + threads_per_block - 1) / threads_per_block, threads_per_block, 0, stream>>>(
          keys, exponent_bits, tasks, count, workspace);
  recombine_halves<N>
      <<<(count + threads_per_block - 1) / threads_per_block, threads_per_block, 0, stream>>>(
          keys, tasks, count, workspace);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  return rsa_check<N>(public_keys, tasks, count, workspace.decrypted, verdicts, workspace.check,
                      stream);
}

#define NACRE_RSA_PRIVATE(N)                                                               \
  template std::size_t rsa_private_workspace_size<N>(std::uint32_t);                       \
  template cudaError_t rsa_private<N>(const RsaPublicWords<N>*, const RsaPrivateWords<N>*, \
                                      std::uint32_t, const RsaTask*, std::uint32_t,        \
                                      std::uint32_t*, void*, cudaStream_t);
NACRE_RSA_PRIVATE(16)
NACRE_RSA_PRIVATE(32)
NACRE_RSA_PRIVATE(48)
NACRE_RSA_PRIVATE(64)
#undef NACRE_RSA_PRIVATE

}  // namespace nacre::engine::cuda
