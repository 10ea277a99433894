// SPDX-License-Identifier: Apache-2.0
// Sealing on a device. The chunk goes up once and the record comes down once. In between, the
// device does this:
//   encode pieces, size streams, lay out records, write streams, encrypt and tag, checksum.
// Under `auto` a sample comes first, and pieces that do not look compressible are not encoded.
#include "gpu_engine/cuda/batch_parts.h"
#include "gpu_engine/cuda/kernels/aead.h"
#include "gpu_engine/cuda/record_parts.h"

namespace nacre::engine::cuda {

Result<> run_seal_batch(const BatchRun& run) {
  const cudaStream_t stream = run.slot.stream();
  const std::uint32_t count = run.count();
  NACRE_ASSIGN(const std::vector<const Byte*> plain, copy_in_messages(run));
  NACRE_ASSIGN(const BatchKeys keys, BatchKeys::add(run));

  std::vector<std::uint32_t> record_max(count);
  std::vector<std::uint32_t> stream_max(count);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    const auto plain_size = static_cast<std::uint32_t>(message.input_size);
    record_max[i] = static_cast<std::uint32_t>(
        record_size_bound(suite_of(run, message.key_index), message.padding, plain_size));
    stream_max[i] = plain_size == 0 ? 0 : plain_size - 1;
    total += record_max[i] + record_aad_size;
  }
  NACRE_ASSIGN(const BatchRecords records, BatchRecords::add(run, keys, record_max));
  std::vector<Byte*> streams_at(count);
  for (std::size_t i = 0; i < count; ++i)
    streams_at[i] = records.record(i) + record_header_size + record_body_header_size;
  NACRE_ASSIGN(const BatchStreams streams, BatchStreams::add(run, plain, streams_at, stream_max));
  NACRE_ASSIGN(const Workspace workspace, take_workspace(run, total));

  const Codec codec = encoder_of(run.batch.kind).codec;
  NACRE_TRY(run.slot.upload());
  const auto kernels = [&]() -> Result<> {
    NACRE_TRY(keys.expand(run));
    NACRE_TRY(streams.encode(run));
    NACRE_TRY(check(lay_out_records(records.tasks(), streams.tasks(), streams.sizes(),
                                    static_cast<std::uint32_t>(codec), count, records.aead(),
                                    records.checksums(), records.sizes(), stream),
                    "laying out records"));
    NACRE_TRY(streams.write(run));
    NACRE_TRY(records.seal(run, run.batch.kind.form, keys, workspace));
    return {};
  };
  NACRE_TRY(run.launch(kernels));
  NACRE_TRY(run.slot.finish());

  std::vector<std::uint32_t> sizes(count);
  for (std::size_t i = 0; i < count; ++i) {
    sizes[i] = records.size_after(i);
    run.result(i) = {.ok = true,
                     .codec = streams.size_after(i).coded != 0 ? codec : Codec::none,
                     .output_size = sizes[i]};
  }
  return copy_out(run, records.places(), sizes);
}

}  // namespace nacre::engine::cuda
