// SPDX-License-Identifier: Apache-2.0
// Encryption and decryption on a device: bare block ciphers, and suites that authenticate.
#include <algorithm>

#include "gpu_engine/cuda/batch_parts.h"
#include "gpu_engine/cuda/kernels/aead.h"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/record_parts.h"

namespace nacre::engine::cuda {

Result<> run_cipher_batch(const BatchRun& run) {
  const std::uint32_t count = run.count();
  const BatchKind& kind = run.batch.kind;
  NACRE_ASSIGN(const std::vector<const Byte*> input, copy_in_messages(run));
  NACRE_ASSIGN(const BatchKeys keys, BatchKeys::add(run));
  NACRE_ASSIGN(const Mirrored<CryptTask> tasks, run.slot.add_upload_unset<CryptTask>(count));
  std::vector<std::uint32_t> sizes(count);
  std::uint64_t total = 0;
  std::uint32_t size_max = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sizes[i] = static_cast<std::uint32_t>(run.message(i).input_size);
    total += sizes[i];
    size_max = std::max(size_max, sizes[i]);
  }
  // The output gets memory of its own: in place, CBC decryption would have to keep ciphertext
  // blocks that other threads overwrite.
  NACRE_ASSIGN(const std::vector<Byte*> out, take_places(run, sizes));
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    CryptTask& task = tasks.host[i];
    task = {.in = input[i], .out = out[i], .size = sizes[i], .key = keys.place(message.key_index)};
    std::copy_n(message.iv.begin(), sizeof task.iv, task.iv);
  }
  NACRE_ASSIGN(const Workspace workspace, take_workspace(run, total));

  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(keys.expand(run));
    NACRE_TRY(check(crypt(kind.mode, kind.direction, tasks.device, count, total, size_max,
                          keys.table(), workspace.data, run.slot.stream()),
                    "running a block cipher"));
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  // The device returns no verdicts, so there is only one wait, for the outputs. If it fails, the
  // caller uses none of the results.
  return copy_out(run, {out.begin(), out.end()}, sizes, [&] {
    for (std::size_t i = 0; i < count; ++i)
      run.result(i) = {.ok = true, .output_size = sizes[i]};
  });
}

Result<> run_suite_batch(const BatchRun& run) {
  const std::uint32_t count = run.count();
  const BatchKind& kind = run.batch.kind;
  const bool encrypts = kind.operation == Operation::encrypt;
  std::vector<InputRange> ranges(2 * std::size_t{count});
  for (std::size_t i = 0; i < count; ++i) {
    ranges[i] = {run.message(i).input_offset, run.message(i).input_size};
    ranges[count + i] = {run.message(i).aad_offset, run.message(i).aad_size};
  }
  NACRE_ASSIGN(const std::vector<const Byte*> input, copy_in(run, ranges));
  NACRE_ASSIGN(const BatchKeys keys, BatchKeys::add(run));
  NACRE_ASSIGN(const Mirrored<AeadTask> tasks, run.slot.add_upload_unset<AeadTask>(count));
  NACRE_ASSIGN(const Mirrored<std::uint32_t> verdicts, run.slot.add_download<std::uint32_t>(count));
  std::vector<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i)
    sizes[i] = static_cast<std::uint32_t>(run.message(i).input_size +
                                          tag_size_bytes(suite_of(run, run.message(i).key_index)));
  NACRE_ASSIGN(const std::vector<Byte*> out, take_places(run, sizes));
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    const std::size_t tag_size = sizes[i] - message.input_size;
    const std::uint64_t size = encrypts ? message.input_size : message.input_size - tag_size;
    Byte* const place = out[i];
    sizes[i] = static_cast<std::uint32_t>(encrypts ? size + tag_size : size);
    AeadTask& task = tasks.host[i];
    task = {.in = input[i],
            .out = place,
            .size = size,
            .aad = input[count + i],
            .aad_size = static_cast<std::uint32_t>(message.aad_size),
            .key = keys.place(message.key_index),
            .nonce = {},
            .tag = encrypts ? place + size : const_cast<Byte*>(input[i]) + size};
    std::copy_n(message.iv.begin(), sizeof task.nonce, task.nonce);
    total += message.input_size + message.aad_size;
  }
  NACRE_ASSIGN(const Workspace workspace, take_workspace(run, total));
  const cudaStream_t stream = run.slot.stream();

  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(keys.expand(run));
    if (encrypts) {
      NACRE_TRY(check(
          aead_seal(kind.form, tasks.device, count, total, keys.table(), workspace.data, stream),
          "encrypting under a suite"));
    } else {
      NACRE_TRY(check(aead_open(kind.form, tasks.device, count, total, keys.table(),
                                verdicts.device, workspace.data, stream),
                      "decrypting under a suite"));
    }
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  // When it encrypts, the device returns no verdicts.
  if (!encrypts) NACRE_TRY(run.slot.finish());

  for (std::size_t i = 0; i < count; ++i) {
    if (!encrypts && verdicts.host[i] == 0) {
      sizes[i] = 0;
      run.refuse(i);
      continue;
    }
    run.result(i) = {.ok = true, .output_size = sizes[i]};
  }
  return copy_out(run, {out.begin(), out.end()}, sizes);
}

}  // namespace nacre::engine::cuda
