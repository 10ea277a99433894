// SPDX-License-Identifier: Apache-2.0
// RSA on numbers of fixed sizes. N is how many limbs of 32 bits a prime has: 16, 32, 48 or 64. A
// modulus has 2 N. Smaller numbers have leading zeros. The lowest limb comes first; the numbers in
// tasks are bytes, the highest first (RFC 8017, 4).
//
// Workspaces are device memory, aligned to 4 bytes, and hold secrets after a launch: the caller
// wipes them. The addresses and the time of a private operation depend on sizes alone, not on keys
// or messages.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// R here is 2^(32 * 2 N), in RsaHalfWords 2^(32 * N).
template <int N>
struct RsaPublicWords {
  std::uint32_t modulus[2 * N];    // odd
  std::uint32_t r_squared[2 * N];  // R^2 mod modulus
  std::uint32_t inverse;           // -1 / modulus mod 2^32
  std::uint32_t exponent[2];       // odd, 3 or more
};

template <int N>
struct RsaHalfWords {
  std::uint32_t modulus[N];    // a prime
  std::uint32_t r_squared[N];  // R^2 mod modulus
  std::uint32_t exponent[N];   // d mod (modulus - 1)
  std::uint32_t inverse;       // -1 / modulus mod 2^32
};

template <int N>
struct RsaPrivateWords {
  RsaHalfWords<N> halves[2];   // of p and of q
  std::uint32_t q_inverse[N];  // 1 / q mod p
};

// size: of in, out and the modulus, in bytes.
struct RsaTask {
  const Byte* in;
  Byte* out;
  std::uint32_t size;
  std::uint32_t key;  // index into the keys
};

// In bytes, for count tasks.
template <int N>
std::size_t rsa_public_workspace_size(std::uint32_t count);
template <int N>
std::size_t rsa_private_workspace_size(std::uint32_t count);

// out <- in^e mod n. verdicts[i] becomes 1, or 0 if task i's `in` is not below n; its `out` is then
// zeros.
template <int N>
cudaError_t rsa_public(const RsaPublicWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
                       std::uint32_t* verdicts, void* workspace, cudaStream_t stream);

// out <- in^d mod n by the Chinese remainder theorem (CRT), with both halves in parallel. Then
// out^e mod n is compared with in. verdicts[i] becomes 1, or 0 if task i's `in` is not below n or
// the comparison fails; its `out` is then zeros, since a wrong result would give the key away
// (Boneh, DeMillo, Lipton, EUROCRYPT 1997). exponent_bits: no exponent of a half is longer.
template <int N>
cudaError_t rsa_private(const RsaPublicWords<N>* public_keys, const RsaPrivateWords<N>* keys,
                        std::uint32_t exponent_bits, const RsaTask* tasks, std::uint32_t count,
                        std::uint32_t* verdicts, void* workspace, cudaStream_t stream);

template <int N>
std::size_t rsa_check_workspace_size(std::uint32_t count);

// Checks results of private operations; only rsa_private() calls it. results: 2 N limbs for each
// message; limb j of message i is at [j * count + i]. A right result goes to the task's `out`; for
// a wrong one `out` becomes zeros. verdicts: as in rsa_private().
template <int N>
cudaError_t rsa_check(const RsaPublicWords<N>* keys, const RsaTask* tasks, std::uint32_t count,
                      std::uint32_t* results, std::uint32_t* verdicts, void* workspace,
                      cudaStream_t stream);

}  // namespace nacre::engine::cuda
