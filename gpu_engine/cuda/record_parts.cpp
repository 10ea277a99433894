// SPDX-License-Identifier: Apache-2.0
// Makes the tasks for records that are sealed or opened on a device.
#include "gpu_engine/cuda/record_parts.h"

#include <algorithm>
#include <cstring>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cuda/kernels/aead.h"

namespace nacre::engine::cuda {
namespace {

static_assert(record_header_size == record_header_size_bytes &&
              record_crc_offset == record_aad_header_size_bytes &&
              record_body_header_size == sizeof(RecordBodyHeader));

// Bodies begin at multiples of this on the device; each header lies directly before its body.
constexpr std::size_t body_alignment = 16;
constexpr std::size_t record_shift = body_alignment - record_header_size % body_alignment;

struct Aad {
  Byte bytes[64];
};
static_assert(sizeof(Aad) >= record_aad_size);

}  // namespace

CipherSuite suite_of(const BatchRun& run, std::uint32_t key_index) {
  return run.payload.key_table[key_index].use.suite;
}

Result<BatchRecords> BatchRecords::add(const BatchRun& run, const BatchKeys& keys,
                                       const std::vector<std::uint32_t>& record_max) {
  const std::uint32_t count = run.count();
  const bool reseals = run.batch.kind.operation == Operation::reseal;
  BatchRecords records;
  NACRE_ASSIGN(records.tasks_, run.slot.add_upload<RecordTask>(count));
  NACRE_ASSIGN(records.sizes_, run.slot.add_download<std::uint32_t>(count));
  NACRE_ASSIGN(records.aead_, run.slot.take<AeadTask>(count));
  NACRE_ASSIGN(records.checksums_, run.slot.take<ChecksumTask>(count));
  NACRE_ASSIGN(records.crcs_, run.slot.take<std::uint32_t>(count));
  NACRE_ASSIGN(Aad * aad, run.slot.take<Aad>(count));
  records.places_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    const std::uint32_t key = reseals ? message.new_key_index : message.key_index;
    const CipherSuite suite = suite_of(run, key);
    NACRE_ASSIGN(Byte * room, run.slot.take_bytes(record_shift + record_max[i] + body_alignment));
    records.places_[i] = room + record_shift;
    RecordTask& task = records.tasks_.host[i];
    task = {.record = room + record_shift,
            .aad = aad[i].bytes,
            .key = keys.place(key),
            .epoch = message.epoch,
            .counter = message.counter,
            .tag_size = static_cast<std::uint32_t>(tag_size_bytes(suite)),
            .unit = static_cast<std::uint32_t>(plain_unit_bytes(suite)),
            .padded = message.padding == Padding::padme};
    std::ranges::copy(run.payload.volume_id, task.volume_id);
    std::ranges::copy(message.salt, task.salt);
    std::ranges::copy(message.identity, task.identity);
  }
  return records;
}

Result<> BatchRecords::seal(const BatchRun& run, KeyForm form, const BatchKeys& keys,
                            const Workspace& workspace) const {
  const cudaStream_t stream = run.slot.stream();
  NACRE_TRY(check(aead_seal(form, aead_, run.count(), workspace.total_bytes, keys.table(),
                            workspace.data, stream),
                  "encrypting records"));
  NACRE_TRY(check(checksum(ChecksumPolynomial::crc32, checksums_, run.count(),
                           workspace.total_bytes, crcs_, workspace.data, stream),
                  "checksumming records"));
  return check(put_checksums(tasks_.device, crcs_, run.count(), stream), "completing headers");
}

Result<BatchOpenings> BatchOpenings::add(const BatchRun& run, const BatchKeys& keys,
                                         const std::vector<const Byte*>& records,
                                         const std::vector<Byte*>& bodies) {
  const std::uint32_t count = run.count();
  BatchOpenings openings;
  NACRE_ASSIGN(openings.tasks_, run.slot.add_upload<OpenedTask>(count));
  NACRE_ASSIGN(openings.aead_, run.slot.add_upload<AeadTask>(count));
  NACRE_ASSIGN(openings.checksums_, run.slot.add_upload<ChecksumTask>(count));
  NACRE_ASSIGN(const Mirrored<Aad> aad, run.slot.add_upload<Aad>(count));
  NACRE_ASSIGN(openings.opened_, run.slot.add_download<OpenedRecord>(count));
  NACRE_ASSIGN(openings.crcs_, run.slot.take<std::uint32_t>(count));
  NACRE_ASSIGN(openings.verdicts_, run.slot.take<std::uint32_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    const Message& message = run.message(i);
    const ByteView record(run.payload.input + message.input_offset, message.input_size);
    const auto header = check_record_header(record);
    const std::size_t tag_size = tag_size_bytes(suite_of(run, message.key_index));
    OpenedTask& task = openings.tasks_.host[i];
    task.check_identity = message.check_identity;
    std::ranges::copy(message.identity, task.identity);
    // A record with a bad header keeps this empty task; a body of that size is never good.
    AeadTask& aead = openings.aead_.host[i];
    aead = {.in = records[i],
            .out = bodies[i],
            .size = 0,
            .aad = aad.device[i].bytes,
            .aad_size = 0,
            .key = keys.place(message.key_index),
            .nonce = {},
            .tag = const_cast<Byte*>(records[i])};
    openings.checksums_.host[i] = {.data = records[i], .size = 0, .before = 0};
    if (!header || header->stored_size != record.size() ||
        record.size() < record_header_size + record_body_header_size + tag_size)
      continue;
    const std::size_t body_size = record.size() - record_header_size - tag_size;
    if (body_size % plain_unit_bytes(suite_of(run, message.key_index)) != 0) continue;
    Aad& bytes = aad.host[i];
    std::ranges::copy(run.payload.volume_id, bytes.bytes);
    std::copy_n(record.begin(), record_crc_offset, bytes.bytes + sizeof(VolumeId));
    task.body = bodies[i];
    task.body_size = static_cast<std::uint32_t>(body_size);
    task.expected_checksum = header->crc32;
    aead.in = records[i] + record_header_size;
    aead.size = body_size;
    aead.aad_size = record_aad_size;
    store_le(aead.nonce + 4, std::uint64_t{header->counter});
    aead.tag = const_cast<Byte*>(records[i]) + record_header_size + body_size;
    openings.checksums_.host[i] = {.data = records[i] + record_header_size,
                                   .size = body_size + tag_size,
                                   .before = crc32(0, record.first(record_crc_offset))};
  }
  return openings;
}

Result<> BatchOpenings::open(const BatchRun& run, const BatchKeys& keys,
                             const Workspace& workspace) const {
  const cudaStream_t stream = run.slot.stream();
  NACRE_TRY(check(checksum(ChecksumPolynomial::crc32, checksums_.device, run.count(),
                           workspace.total_bytes, crcs_, workspace.data, stream),
                  "checksumming records"));
  return check(aead_open(run.batch.kind.form, aead_.device, run.count(), workspace.total_bytes,
                         keys.table(), verdicts_, workspace.data, stream),
               "decrypting records");
}

}  // namespace nacre::engine::cuda
