// SPDX-License-Identifier: Apache-2.0
// Suites that authenticate, over arrays of tasks: AES-GCM, and AES-CTR, AES-CBC, DES-CBC or
// 3DES-CBC with HMAC-SHA256. The bytes are those of cipher/aead.h.
//
// Their parts are below, for aead.cu: the tags of many messages by GHASH (NIST SP 800-38D, 6.4),
// which makes a partial result a tile and then a tag a message, and by HMAC-SHA256 (RFC 2104; the
// suites that encrypt first: docs/FORMAT.md, "Cipher suites").
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/tasks.h"
#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {

// total_bytes: the sum over all tasks, with their additional data.
std::size_t aead_workspace_size(std::uint32_t count, std::uint64_t total_bytes);

// form: the one form of all tasks' keys; gcm, ctr_hmac or cbc_hmac (which takes whole blocks). Tags
// are 16 bytes for gcm, else 32.
cudaError_t aead_seal(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, void* workspace,
                      cudaStream_t stream);

// All tags are compared before anything is decrypted. verdicts[i]: 1, or 0 when the tag does not
// match; the task's output is then zeros.
cudaError_t aead_open(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, std::uint32_t* verdicts,
                      void* workspace, cudaStream_t stream);

// Which of a task's ranges holds the ciphertext, and whether the tag is written or compared.
enum class TagUse : std::uint8_t { write_of_out, compare_with_in };

// The stream that is hashed: the additional data and the ciphertext, each filled up to whole
// blocks, and a block of their sizes in bits.
struct HashStream {
  std::uint64_t aad_blocks, blocks;
};

inline __host__ __device__ HashStream hash_stream(const AeadTask& task) {
  const std::uint64_t aad_blocks = (std::uint64_t{task.aad_size} + 15) / 16;
  return {aad_blocks, aad_blocks + task.size / 16 + (task.size % 16 != 0 ? 1 : 0) + 1};
}

// The factor (1, 2 or 4) of ghash_small_tile_blocks that a tile has. A tile's end costs as much as
// two of its batches, so tiles are larger where there are enough of them to keep the device busy.
std::uint32_t ghash_tile_factor(std::uint64_t total_bytes, int multiprocessors);

inline constexpr std::uint32_t ghash_small_tile_bytes = ghash_small_tile_blocks * 16;
// What a stream has in addition to its bytes: two fillings and the sizes.
inline constexpr std::uint32_t ghash_overhead_bytes = 3 * 16;

struct TilesOfStream {
  const AeadTask* tasks;
  std::uint32_t tile_blocks;

  __device__ std::uint32_t operator()(std::uint32_t index) const {
    return static_cast<std::uint32_t>((hash_stream(tasks[index]).blocks + tile_blocks - 1) /
                                      tile_blocks);
  }
};

// plan: the streams' tiles (TilesOfStream), one a unit. partials: as many as tiles.
// compare_with_in: writes verdicts and sets crypt_tasks[i].key to no_key when the tag does not
// match; otherwise both are unused.
cudaError_t ghash_tags(TagUse use, const AeadTask* tasks, const TilePlanWorkspace& plan,
                       std::uint32_t tile_factor, KeyTable keys, uint4* partials,
                       CryptTask* crypt_tasks, std::uint32_t* verdicts, cudaStream_t stream);

// crypt_tasks[i].iv: message i's IV, of which the tag covers iv_bytes. plain_unit_bytes: a message
// whose size is not a multiple of this does not match. compare_with_in: as in ghash_tags().
cudaError_t hmac_tags(TagUse use, const AeadTask* tasks, std::uint32_t count,
                      std::uint32_t plain_unit_bytes, std::uint32_t iv_bytes,
                      const ExpandedSuiteKey* keys, CryptTask* crypt_tasks, std::uint32_t* verdicts,
                      cudaStream_t stream);

}  // namespace nacre::engine::cuda
