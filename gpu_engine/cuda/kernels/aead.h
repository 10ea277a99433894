// SPDX-License-Identifier: Apache-2.0
// Suites that authenticate, over arrays of tasks: AES-GCM, and AES-CTR, AES-CBC, DES-CBC or
// 3DES-CBC with HMAC-SHA256. Ciphertexts and tags equal those of cipher/aead.h.
//
// The two kinds of tags are declared below aead_open(), for aead.cu: GHASH (NIST SP 800-38D, 6.4),
// which makes a partial result for each tile and then a tag for each message, and HMAC-SHA256 (RFC
// 2104). The HMAC suites encrypt first (docs/FORMAT.md, "Cipher suites").
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/tasks.h"
#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {

// In bytes, for count tasks. total_bytes, here and below: the sum of the tasks' sizes and sizes of
// additional data, or an upper bound of it. The workspace is device memory, aligned to 256 bytes.
std::size_t aead_workspace_size(std::uint32_t count, std::uint64_t total_bytes);

// form: gcm, ctr_hmac or cbc_hmac, the same for all tasks' keys; for cbc_hmac, messages are whole
// blocks. Tags are 16 bytes for gcm, else 32.
cudaError_t aead_seal(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, void* workspace,
                      cudaStream_t stream);

// All tags are compared before anything is decrypted. verdicts[i] becomes 1 if task i's tag
// matches, else 0; the output of a task whose tag does not match is zeros.
cudaError_t aead_open(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, std::uint32_t* verdicts,
                      void* workspace, cudaStream_t stream);

// Sealing: the ciphertext is in `out`, and the tag is written. Opening: the ciphertext is in `in`,
// and the tag is compared.
enum class TagUse : std::uint8_t { write_of_out, compare_with_in };

// The stream that GHASH hashes: the additional data and the ciphertext, each padded to whole
// blocks, and a block with their sizes in bits. blocks: the count of all blocks.
struct HashStream {
  std::uint64_t aad_blocks, blocks;
};

inline __host__ __device__ HashStream hash_stream(const AeadTask& task) {
  const std::uint64_t aad_blocks = (std::uint64_t{task.aad_size} + 15) / 16;
  return {aad_blocks, aad_blocks + task.size / 16 + (task.size % 16 != 0 ? 1 : 0) + 1};
}

// The size of a tile as a multiple (1, 2 or 4) of ghash_small_tile_blocks. The end of a tile costs
// as much as two of its batches, so tiles are larger if enough of them remain to keep the device
// busy.
std::uint32_t ghash_tile_factor(std::uint64_t total_bytes, int multiprocessors);

inline constexpr std::uint32_t ghash_small_tile_bytes = ghash_small_tile_blocks * 16;
// The most that a stream has in addition to its bytes: two paddings and the block of sizes.
inline constexpr std::uint32_t ghash_overhead_bytes = 3 * 16;

struct TilesOfStream {
  const AeadTask* tasks;
  std::uint32_t tile_blocks;

  __device__ std::uint32_t operator()(std::uint32_t index) const {
    return static_cast<std::uint32_t>((hash_stream(tasks[index]).blocks + tile_blocks - 1) /
                                      tile_blocks);
  }
};

// plan: the streams' tiles (TilesOfStream), where each unit is one tile. partials: scratch memory,
// one element for each tile. With compare_with_in, writes verdicts, and sets crypt_tasks[i].key to
// no_key if tag i does not match; with write_of_out both are unused.
cudaError_t ghash_tags(TagUse use, const AeadTask* tasks, const TilePlanWorkspace& plan,
                       std::uint32_t tile_factor, KeyTable keys, uint4* partials,
                       CryptTask* crypt_tasks, std::uint32_t* verdicts, cudaStream_t stream);

// crypt_tasks[i].iv: message i's IV, of which the tag covers iv_bytes. With compare_with_in, a
// message whose size is not a multiple of plain_unit_bytes does not match; verdicts and keys are
// set as by ghash_tags().
cudaError_t hmac_tags(TagUse use, const AeadTask* tasks, std::uint32_t count,
                      std::uint32_t plain_unit_bytes, std::uint32_t iv_bytes,
                      const ExpandedSuiteKey* keys, CryptTask* crypt_tasks, std::uint32_t* verdicts,
                      cudaStream_t stream);

}  // namespace nacre::engine::cuda
