// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256, one thread per message, because each block depends on the one before.
//
// After the padded key, the following is hashed: the sizes of additional data and ciphertext (u64
// each), the additional data, the IV (one cipher block), and the ciphertext. Blocks of 64 bytes
// that lie entirely in the ciphertext are loaded in words, the few others byte by byte.
#include <algorithm>

#include "gpu_engine/cuda/kernels/aead.h"
#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/sha256.cuh"

namespace nacre::engine::cuda {
namespace {

// Blocks have few threads, so that even few messages spread over all multiprocessors.
constexpr int threads_per_block = 32;
constexpr std::uint32_t sizes_bytes = 16;

struct HmacStream {
  const Byte* data;
  const Byte* aad;
  const Byte* iv;
  std::uint64_t size;
  std::uint32_t aad_size;
  std::uint32_t iv_size;

  __device__ std::uint64_t head_size() const {
    return std::uint64_t{sizes_bytes} + aad_size + iv_size;
  }
  __device__ std::uint64_t total_size() const { return head_size() + size; }

  __device__ Byte byte_at(std::uint64_t at) const {
    if (at >= head_size()) return data[at - head_size()];
    if (at < 8) return static_cast<Byte>(std::uint64_t{aad_size} >> (8 * at));
    if (at < sizes_bytes) return static_cast<Byte>(size >> (8 * (at - 8)));
    at -= sizes_bytes;
    return at < aad_size ? aad[at] : iv[at - aad_size];
  }
};

// The big-endian word at offset `at` of the stream with SHA-256's padding: a set bit, zeros, and
// the size in bits in the last eight bytes before `end`. The size includes the block of the padded
// key, which is hashed already.
static __device__ __noinline__ std::uint32_t padded_word(const HmacStream& stream, std::uint64_t at,
                                                         std::uint64_t end) {
  const std::uint64_t total = stream.total_size();
  if (at + 8 >= end) {
    const std::uint64_t bits = (total + sha256_block_bytes) * 8;
    return static_cast<std::uint32_t>(at + 8 == end ? bits >> 32 : bits);
  }
  std::uint32_t word = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint64_t position = at + i;
    const std::uint32_t byte = position < total    ? stream.byte_at(position)
                               : position == total ? 0x80
                                                   : 0;
    word = word << 8 | byte;
  }
  return word;
}

__device__ void load_ciphertext(std::uint32_t (&block)[16], const HmacStream& stream,
                                std::uint64_t offset) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint4 part = load_block_at(stream.data, offset + 16 * i, stream.size);
    block[4 * i] = swap_bytes(part.x);
    block[4 * i + 1] = swap_bytes(part.y);
    block[4 * i + 2] = swap_bytes(part.z);
    block[4 * i + 3] = swap_bytes(part.w);
  }
}

__device__ Sha256State compute_tag(const HmacStream& stream, const ExpandedSuiteKey& key) {
  Sha256State state;
  for (int i = 0; i < 8; ++i)
    state.words[i] = key.hmac_inner[i];
  const std::uint64_t head = stream.head_size(), total = stream.total_size();
  // The size of the stream with its padding.
  const std::uint64_t end =
      (total + 9 + sha256_block_bytes - 1) / sha256_block_bytes * sha256_block_bytes;
#pragma unroll 1
  for (std::uint64_t at = 0; at < end; at += sha256_block_bytes) {
    std::uint32_t block[16];
    if (at >= head && at + sha256_block_bytes <= total) {
      load_ciphertext(block, stream, at - head);
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i)
        block[i] = padded_word(stream, at + 4 * i, end);
    }
    sha256_compress(state, block);
  }
  std::uint32_t block[16] = {};
#pragma unroll
  for (int i = 0; i < 8; ++i)
    block[i] = state.words[i];
  block[8] = 0x80000000;
  block[15] = (sha256_block_bytes + sizeof(state.words)) * 8;
  for (int i = 0; i < 8; ++i)
    state.words[i] = key.hmac_outer[i];
  sha256_compress(state, block);
  return state;
}

__global__ __launch_bounds__(threads_per_block) void hmac_messages(
    const AeadTask* tasks, TagUse use, std::uint32_t count, std::uint32_t plain_unit_bytes,
    std::uint32_t iv_bytes, const ExpandedSuiteKey* keys, CryptTask* crypt_tasks,
    std::uint32_t* verdicts) {
  const std::uint32_t index = blockIdx.x * threads_per_block + threadIdx.x;
  if (index >= count) return;
  const AeadTask& task = tasks[index];
  const HmacStream stream = {use == TagUse::write_of_out ? task.out : task.in,
                             task.aad,
                             crypt_tasks[index].iv,
                             task.size,
                             task.aad_size,
                             iv_bytes};
  const Sha256State tag = compute_tag(stream, keys[task.key]);
  std::uint32_t difference = 0;
  for (std::uint32_t i = 0; i < sizeof(tag.words); ++i) {
    const auto byte = static_cast<Byte>(tag.words[i / 4] >> (24 - 8 * (i % 4)));
    if (use == TagUse::write_of_out)
      task.tag[i] = byte;
    else
      difference |= static_cast<std::uint32_t>(task.tag[i] ^ byte);
  }
  if (use == TagUse::write_of_out) return;
  // The IV depends only on the last iv_bytes of the nonce, so the bytes before must be zeros.
  for (std::uint32_t i = 0; i + iv_bytes < sizeof(task.nonce); ++i)
    difference |= task.nonce[i];
  const bool matches = difference == 0 && task.size % plain_unit_bytes == 0;
  verdicts[index] = matches ? 1 : 0;
  if (!matches) crypt_tasks[index].key = no_key;
}

}  // namespace

cudaError_t hmac_tags(TagUse use, const AeadTask* tasks, std::uint32_t count,
                      std::uint32_t plain_unit_bytes, std::uint32_t iv_bytes,
                      const ExpandedSuiteKey* keys, CryptTask* crypt_tasks, std::uint32_t* verdicts,
                      cudaStream_t stream) {
  hmac_messages<<<(count + threads_per_block - 1) / threads_per_block, threads_per_block, 0,
                  stream>>>(tasks, use, count, plain_unit_bytes, iv_bytes, keys, crypt_tasks,
                            verdicts);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
