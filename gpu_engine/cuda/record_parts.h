// SPDX-License-Identifier: Apache-2.0
// What batches of records share: records that are made on the device, and records that are opened
// there.
#pragma once

#include <vector>

#include "gpu_engine/cuda/batch_parts.h"

namespace nacre::engine::cuda {

// The suite of one of the payload's keys. key_index: as in a message.
CipherSuite suite_of(const BatchRun& run, std::uint32_t key_index);

// Records that are being made: one for each message of the batch, in device memory that belongs to
// the batch's slot. `place` counts the messages of the batch from 0. Pointers are of device memory,
// except for what `…_after()` returns: values that the host has once the batch has ended. Used by
// the one thread that runs the batch.
class BatchRecords {
 public:
  // Uses the messages' salt, counter, identity and so on, and for reseal their new_key_index.
  // record_max[i]: the most bytes that record i can have.
  static Result<BatchRecords> add(const BatchRun& run, const BatchKeys& keys,
                                  const std::vector<std::uint32_t>& record_max);
  // Launches encryption, tags and checksums of the tasks that earlier kernels have written, and
  // completes the headers.
  Result<> seal(const BatchRun& run, KeyForm form, const BatchKeys& keys,
                const Workspace& workspace) const;
  Byte* record(std::size_t place) const { return tasks_.host[place].record; }
  const std::vector<const Byte*>& places() const { return places_; }
  const RecordTask* tasks() const { return tasks_.device; }
  AeadTask* aead() const { return aead_; }
  ChecksumTask* checksums() const { return checksums_; }
  std::uint32_t* sizes() const { return sizes_.device; }
  std::uint32_t size_after(std::size_t place) const { return sizes_.host[place]; }

 private:
  Mirrored<RecordTask> tasks_;
  std::vector<const Byte*> places_;
  AeadTask* aead_ = nullptr;
  ChecksumTask* checksums_ = nullptr;
  std::uint32_t* crcs_ = nullptr;
  Mirrored<std::uint32_t> sizes_;
};

// Records that are being opened. A record whose header is bad has tasks of size 0, and is refused
// in the end like all others that the device does not find good.
class BatchOpenings {
 public:
  // records[i], bodies[i]: device memory; the room at bodies[i] is at least as long as the record.
  static Result<BatchOpenings> add(const BatchRun& run, const BatchKeys& keys,
                                   const std::vector<const Byte*>& records,
                                   const std::vector<Byte*>& bodies);
  OpenedTask& task(std::size_t place) const { return tasks_.host[place]; }
  // Launches the kernels that compute CRCs, compare tags and decrypt.
  Result<> open(const BatchRun& run, const BatchKeys& keys, const Workspace& workspace) const;
  const OpenedTask* tasks() const { return tasks_.device; }
  const std::uint32_t* crcs() const { return crcs_; }
  const std::uint32_t* verdicts() const { return verdicts_; }
  OpenedRecord* opened() const { return opened_.device; }
  const OpenedRecord& opened_after(std::size_t place) const { return opened_.host[place]; }

 private:
  Mirrored<OpenedTask> tasks_;
  Mirrored<AeadTask> aead_;
  Mirrored<ChecksumTask> checksums_;
  Mirrored<OpenedRecord> opened_;
  std::uint32_t* crcs_ = nullptr;
  std::uint32_t* verdicts_ = nullptr;
};

}  // namespace nacre::engine::cuda
