// SPDX-License-Identifier: Apache-2.0
// Bare codecs and checksums on a device.
#include <algorithm>

#include "gpu_engine/cuda/batch_parts.h"

namespace nacre::engine::cuda {

Result<> run_compress_batch(const BatchRun& run) {
  const std::uint32_t count = run.count();
  NACRE_ASSIGN(const std::vector<const Byte*> plain, copy_in_messages(run));
  std::vector<Byte*> out(count);
  std::vector<std::uint32_t> bound(count);
  for (std::size_t i = 0; i < count; ++i) {
    bound[i] = static_cast<std::uint32_t>(
        stream_size_bound(run.batch.kind.codec, run.message(i).input_size));
    NACRE_ASSIGN(out[i], run.slot.take_bytes(bound[i]));
  }
  // A stream of a codec that the caller named keeps that codec, however long it becomes.
  NACRE_ASSIGN(const BatchStreams streams, BatchStreams::add(run, plain, out, bound));

  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(streams.encode(run));
    NACRE_TRY(streams.write(run));
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  NACRE_TRY(run.slot.finish());

  // A stream that is not coded has codec none, but only if the caller asked for automatic.
  const auto codec_of = [&](const StreamSize& size) {
    if (run.batch.kind.codec != Codec::automatic) return run.batch.kind.codec;
    return size.coded != 0 ? encoder_of(run.batch.kind).codec : Codec::none;
  };
  std::vector<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t size = streams.size_after(i).size;
    if (size > run.message(i).output_capacity) {
      run.refuse(i);
      continue;
    }
    sizes[i] = size;
    run.result(i) = {.ok = true, .codec = codec_of(streams.size_after(i)), .output_size = size};
  }
  return copy_out(run, {out.begin(), out.end()}, sizes);
}

Result<> run_decompress_batch(const BatchRun& run) {
  const std::uint32_t count = run.count();
  NACRE_ASSIGN(const std::vector<const Byte*> streams, copy_in_messages(run));
  std::vector<std::uint32_t> plain_max(count);
  for (std::size_t i = 0; i < count; ++i)
    plain_max[i] = static_cast<std::uint32_t>(run.message(i).output_capacity);
  NACRE_ASSIGN(const BatchPlains plains, BatchPlains::add(run, plain_max, run.batch.kind.codec));
  NACRE_ASSIGN(const Mirrored<CutTask> cuts, run.slot.add_upload_unset<CutTask>(count));
  std::vector<const Byte*> plain_at(count);
  for (std::size_t i = 0; i < count; ++i) {
    plain_at[i] = plains.plain(i);
    cuts.host[i] = {.stream = streams[i],
                    .plain = plains.plain(i),
                    .stream_size = static_cast<std::uint32_t>(run.message(i).input_size),
                    .plain_size = plain_max[i],
                    .first_piece = plains.first_piece(i),
                    .piece_max = plains.piece_max(i),
                    .codec = static_cast<std::uint8_t>(run.batch.kind.codec),
                    .valid = 1};
  }

  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(plains.decode(run, cuts.device));
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  NACRE_ASSIGN(const StagedOutputs short_ones, StagedOutputs::add(run, plain_at, plain_max));
  NACRE_TRY(run.slot.finish());

  std::vector<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!plains.is_valid_after(i)) {
      run.refuse(i);
      continue;
    }
    sizes[i] = plain_max[i];
    run.result(i) = {.ok = true, .codec = run.batch.kind.codec, .output_size = plain_max[i]};
  }
  if (!short_ones) return copy_out(run, plain_at, sizes);
  short_ones.copy_out(run, plain_at, sizes);
  return {};
}

Result<> run_checksum_batch(const BatchRun& run) {
  const std::uint32_t count = run.count();
  const bool castagnoli = run.batch.kind.checksum == Checksum::crc32c;
  NACRE_ASSIGN(const std::vector<const Byte*> data, copy_in_messages(run));
  NACRE_ASSIGN(const Mirrored<ChecksumTask> tasks, run.slot.add_upload_unset<ChecksumTask>(count));
  NACRE_ASSIGN(const Mirrored<std::uint32_t> results, run.slot.add_download<std::uint32_t>(count));
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    tasks.host[i] = {.data = data[i], .size = run.message(i).input_size, .before = 0};
    total += run.message(i).input_size;
  }
  NACRE_ASSIGN(const Workspace workspace, take_workspace(run, total));

  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(check(
        checksum(castagnoli ? ChecksumPolynomial::crc32c : ChecksumPolynomial::crc32, tasks.device,
                 count, total, results.device, workspace.data, run.slot.stream()),
        "checksumming"));
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  NACRE_TRY(run.slot.finish());

  for (std::size_t i = 0; i < count; ++i) {
    MessageResult& result = run.result(i);
    result = {.ok = true};
    (castagnoli ? result.crc32c : result.crc32) = results.host[i];
  }
  return {};
}

}  // namespace nacre::engine::cuda
