// SPDX-License-Identifier: Apache-2.0
// Seals and opens: makes the cipher's tasks from the suites' tasks. Sealing then runs the cipher
// first and the tags second, opening the other way round.
#include "gpu_engine/cuda/kernels/aead.h"

#include "gpu_engine/cuda/kernels/aes.cuh"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/des.h"
#include "gpu_engine/cuda/kernels/des_serial.h"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 128;

struct Workspace {
  CryptTask* crypt_tasks;
  TilePlanWorkspace hash_plan;
  uint4* partials;
  char* crypt;
  std::size_t size;

  Workspace(void* base, std::uint32_t count, std::uint64_t total_bytes) {
    WorkspaceCursor cursor(base);
    crypt_tasks = cursor.take<CryptTask>(count);
    hash_plan =
        take_tile_plan(cursor, count, total_bytes, ghash_overhead_bytes, ghash_small_tile_bytes, 1);
    partials = cursor.take<uint4>(hash_plan.tiles_max);
    crypt = cursor.take<char>(crypt_workspace_size(count, total_bytes));
    size = cursor.used();
  }
};

// The first counter block (gcm, ctr_hmac) or the IV (cbc_hmac) of a message.
__device__ uint4 first_vector(KeyForm form, const AeadTask& task, const SmallTables& tables,
                              const KeyTable& keys) {
  uint4 vector = load_bytes_of_block(task.nonce, sizeof(task.nonce));
  // GCM keeps counter 1 for the tag.
  if (form == KeyForm::gcm) vector.w = swap_bytes(2u);
  if (form == KeyForm::cbc_hmac)
    vector = encrypt_one_block(tables, RoundKeyView<1>{keys.suites[task.key].iv.at},
                               CipherKeyView(keys.ciphers, task.key).round_count(), vector);
  return vector;
}

// CBC under DES: the IV is the nonce's last eight bytes under the block cipher.
template <int pass_count>
__device__ uint4 first_des_vector(const AeadTask& task, const SmallBoxes& boxes,
                                  const KeyTable& keys) {
  const Byte* const counter = task.nonce + sizeof(task.nonce) - 8;
  const DesBlock block =
      des_block_of(make_uint2(load_bytes(counter, 4), load_bytes(counter + 4, 4)));
  const uint2 vector =
      des_words_of(encrypt_des_block<pass_count>(boxes, keys.des[task.key].serial_iv, block));
  return make_uint4(vector.x, vector.y, 0, 0);
}

__device__ void describe(const AeadTask& task, uint4 vector, CryptTask& crypt_task) {
  crypt_task.in = task.in;
  crypt_task.out = task.out;
  crypt_task.size = task.size;
  crypt_task.key = task.key;
  store_block(crypt_task.iv, 0, block_bytes, vector);
}

__global__ void prepare(KeyForm form, const AeadTask* tasks, std::uint32_t count, KeyTable keys,
                        CryptTask* crypt_tasks) {
  __shared__ std::uint32_t shared[256];
  const SmallTables tables(shared);
  const std::uint32_t index = blockIdx.x * threads_per_block + threadIdx.x;
  if (index >= count) return;
  describe(tasks[index], first_vector(form, tasks[index], tables, keys), crypt_tasks[index]);
}

template <int pass_count>
__global__ void prepare_des(const AeadTask* tasks, std::uint32_t count, KeyTable keys,
                            CryptTask* crypt_tasks) {
  __shared__ std::uint32_t shared[des_box_words];
  const SmallBoxes boxes(shared);
  const std::uint32_t index = blockIdx.x * threads_per_block + threadIdx.x;
  if (index >= count) return;
  describe(tasks[index], first_des_vector<pass_count>(tasks[index], boxes, keys),
           crypt_tasks[index]);
}

cudaError_t compute_tags(KeyForm form, TagUse use, const AeadTask* tasks, std::uint32_t count,
                         std::uint64_t total_bytes, const Workspace& workspace, KeyTable keys,
                         std::uint32_t* verdicts, cudaStream_t stream) {
  const std::uint32_t block_size = keys.family == CipherFamily::aes ? block_bytes : 8;
  if (form != KeyForm::gcm)
    return hmac_tags(use, tasks, count, form == KeyForm::cbc_hmac ? block_size : 1, block_size,
                     keys.suites, workspace.crypt_tasks, verdicts, stream);
  DeviceShape shape;
  cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  const std::uint32_t factor = ghash_tile_factor(total_bytes, shape.multiprocessors);
  error = make_tile_plan(TilesOfStream{tasks, factor * ghash_small_tile_blocks},
                         workspace.hash_plan, stream);
  if (error != cudaSuccess) return error;
  return ghash_tags(use, tasks, workspace.hash_plan, factor, keys, workspace.partials,
                    workspace.crypt_tasks, verdicts, stream);
}

cudaError_t run(TagUse use, KeyForm form, const AeadTask* tasks, std::uint32_t count,
                std::uint64_t total_bytes, KeyTable keys, std::uint32_t* verdicts,
                void* workspace_base, cudaStream_t stream) {
  const bool is_des = keys.family != CipherFamily::aes;
  if (form == KeyForm::block_cipher || (is_des && form != KeyForm::cbc_hmac))
    return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  const Workspace workspace(workspace_base, count, total_bytes);
  const CryptMode mode = form == KeyForm::cbc_hmac ? CryptMode::cbc : CryptMode::ctr;
  const std::uint32_t blocks = (count + threads_per_block - 1) / threads_per_block;
  if (is_des) {
    const auto kernel =
        keys.family == CipherFamily::des ? prepare_des<1> : prepare_des<des_passes_max>;
    kernel<<<blocks, threads_per_block, 0, stream>>>(tasks, count, keys, workspace.crypt_tasks);
  } else {
    prepare<<<blocks, threads_per_block, 0, stream>>>(form, tasks, count, keys,
                                                      workspace.crypt_tasks);
  }
  cudaError_t error = cudaGetLastError();
  if (use == TagUse::compare_with_in) {
    if (error == cudaSuccess)
      error = compute_tags(form, use, tasks, count, total_bytes, workspace, keys, verdicts, stream);
    if (error == cudaSuccess)
      error = crypt(mode, CryptDirection::decrypt, workspace.crypt_tasks, count, total_bytes,
                    any_size, keys, workspace.crypt, stream);
    return error;
  }
  if (error == cudaSuccess)
    error = crypt(mode, CryptDirection::encrypt, workspace.crypt_tasks, count, total_bytes,
                  any_size, keys, workspace.crypt, stream);
  if (error == cudaSuccess)
    error = compute_tags(form, use, tasks, count, total_bytes, workspace, keys, verdicts, stream);
  return error;
}

}  // namespace

std::size_t aead_workspace_size(std::uint32_t count, std::uint64_t total_bytes) {
  return Workspace(nullptr, count, total_bytes).size;
}

cudaError_t aead_seal(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, void* workspace,
                      cudaStream_t stream) {
  return run(TagUse::write_of_out, form, tasks, count, total_bytes, keys, nullptr, workspace,
             stream);
}

cudaError_t aead_open(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, std::uint32_t* verdicts,
                      void* workspace, cudaStream_t stream) {
  return run(TagUse::compare_with_in, form, tasks, count, total_bytes, keys, verdicts, workspace,
             stream);
}

}  // namespace nacre::engine::cuda
