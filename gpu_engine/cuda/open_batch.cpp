// SPDX-License-Identifier: Apache-2.0
// Unsealing and resealing on a device. Records go up once, and plain bytes or new records come down
// once. Records that the device does not find good are refused; the cpu then finds what is wrong.
#include <algorithm>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/cuda/batch_parts.h"
#include "gpu_engine/cuda/record_parts.h"

namespace nacre::engine::cuda {
namespace {

std::uint64_t input_bytes(const BatchRun& run) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < run.count(); ++i)
    total += run.message(i).input_size + record_aad_size;
  return total;
}

RecordIdentity identity_of(const OpenedRecord& opened) {
  RecordIdentity identity;
  std::ranges::copy(opened.identity, identity.begin());
  return identity;
}

}  // namespace

Result<> run_unseal_batch(const BatchRun& run) {
  const cudaStream_t stream = run.slot.stream();
  const std::uint32_t count = run.count();
  NACRE_ASSIGN(const std::vector<const Byte*> records, copy_in_messages(run));
  NACRE_ASSIGN(const BatchKeys keys, BatchKeys::add(run));
  std::vector<Byte*> bodies(count);
  std::vector<std::uint32_t> plain_max(count);
  for (std::size_t i = 0; i < count; ++i) {
    NACRE_ASSIGN(bodies[i], run.slot.take_bytes(run.message(i).input_size));
    plain_max[i] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(run.message(i).output_capacity, chunk_size_bytes_max));
  }
  NACRE_ASSIGN(const BatchOpenings openings, BatchOpenings::add(run, keys, records, bodies));
  NACRE_ASSIGN(const BatchPlains plains, BatchPlains::add(run, plain_max, Codec::automatic));
  std::vector<const Byte*> plain_at(count);
  for (std::size_t i = 0; i < count; ++i) {
    plain_at[i] = plains.plain(i);
    OpenedTask& task = openings.task(i);
    task.plain = plains.plain(i);
    task.plain_room = plain_max[i];
    task.first_piece = plains.first_piece(i);
    task.piece_max = plains.piece_max(i);
  }
  NACRE_ASSIGN(CutTask * cuts, run.slot.take<CutTask>(count));
  NACRE_ASSIGN(const Workspace workspace, take_workspace(run, input_bytes(run)));

  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(keys.expand(run));
    NACRE_TRY(openings.open(run, keys, workspace));
    NACRE_TRY(check(check_bodies(openings.tasks(), openings.crcs(), openings.verdicts(), count,
                                 cuts, openings.opened(), stream),
                    "checking bodies"));
    NACRE_TRY(plains.decode(run, cuts));
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  NACRE_TRY(run.slot.finish());

  std::vector<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!plains.is_valid_after(i)) {
      run.refuse(i);
      continue;
    }
    const OpenedRecord& opened = openings.opened_after(i);
    sizes[i] = plains.size_after(i);
    run.result(i) = {.ok = true,
                     .codec = static_cast<Codec>(opened.codec),
                     .output_size = sizes[i],
                     .identity = identity_of(opened)};
  }
  return copy_out(run, plain_at, sizes);
}

Result<> run_reseal_batch(const BatchRun& run) {
  const cudaStream_t stream = run.slot.stream();
  const std::uint32_t count = run.count();
  NACRE_ASSIGN(const std::vector<const Byte*> old_records, copy_in_messages(run));
  NACRE_ASSIGN(const BatchKeys keys, BatchKeys::add(run));
  NACRE_ASSIGN(const Mirrored<std::uint32_t> record_max, run.slot.add_upload<std::uint32_t>(count));
  std::vector<std::uint32_t> room(count);
  std::uint64_t total = input_bytes(run);
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    const CipherSuite suite = suite_of(run, message.new_key_index);
    // The longest that the new record can be: the old body with new padding. The old body is
    // decrypted to its place in the new record.
    const std::uint64_t longest =
        record_header_size +
        sealed_body_size(suite, message.padding, message.input_size - record_header_size) +
        tag_size_bytes(suite);
    record_max.host[i] = static_cast<std::uint32_t>(
        std::min<std::uint64_t>({longest, message.output_capacity, record_size_bytes_max}));
    room[i] = static_cast<std::uint32_t>(std::max(longest, message.input_size));
    total += room[i];
  }
  NACRE_ASSIGN(const BatchRecords records, BatchRecords::add(run, keys, room));
  std::vector<Byte*> bodies(count);
  for (std::size_t i = 0; i < count; ++i)
    bodies[i] = records.record(i) + record_header_size;
  NACRE_ASSIGN(const BatchOpenings openings, BatchOpenings::add(run, keys, old_records, bodies));
  for (std::size_t i = 0; i < count; ++i)
    openings.task(i).plain_room = chunk_size_bytes_max;
  NACRE_ASSIGN(const Workspace workspace, take_workspace(run, total));

  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(keys.expand(run));
    NACRE_TRY(openings.open(run, keys, workspace));
    NACRE_TRY(check(lay_out_reseal(openings.tasks(), openings.crcs(), openings.verdicts(),
                                   records.tasks(), record_max.device, count, openings.opened(),
                                   records.aead(), records.checksums(), records.sizes(), stream),
                    "laying out records"));
    NACRE_TRY(records.seal(run, run.batch.kind.new_form, keys, workspace));
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  NACRE_TRY(run.slot.finish());

  std::vector<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const OpenedRecord& opened = openings.opened_after(i);
    if (opened.good == 0) {
      run.refuse(i);
      continue;
    }
    sizes[i] = records.size_after(i);
    run.result(i) = {.ok = true,
                     .codec = static_cast<Codec>(opened.codec),
                     .output_size = sizes[i],
                     .identity = identity_of(opened)};
  }
  return copy_out(run, records.places(), sizes);
}

}  // namespace nacre::engine::cuda
