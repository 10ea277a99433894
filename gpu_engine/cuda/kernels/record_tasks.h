// SPDX-License-Identifier: Apache-2.0
// Records on the device: header, identity, padding and CRC around streams and bodies
// (record/record.h has the layout, seal.cpp the chain that these kernels are parts of).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu_engine/cuda/kernels/stream_tasks.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

inline constexpr std::uint32_t record_header_size = 40;
inline constexpr std::uint32_t record_crc_offset = 36;
inline constexpr std::uint32_t record_body_header_size = 44;
inline constexpr std::uint32_t record_aad_size = 16 + record_crc_offset;

// The fields that a record is sealed with. record: room for the largest record that can come, 8
// bytes past a multiple of 16, so that the body's blocks are aligned.
struct RecordTask {
  Byte* record;
  Byte* aad;  // record_aad_size bytes of scratch
  std::uint32_t key;
  std::uint32_t epoch;
  std::uint32_t counter;
  std::uint32_t tag_size;
  std::uint32_t unit;    // the body is whole units: 1 or the block size
  std::uint32_t padded;  // 1: Padmé
  Byte volume_id[16];
  Byte salt[16];
  Byte identity[32];
};

// Writes header and body header, zeros the padding, and describes the body's encryption and the
// record's checksum to the kernels that follow. record_sizes[i]: of the whole record. The streams
// lie at record + 84 already, or are written there later.
cudaError_t lay_out_records(const RecordTask* tasks, const StreamTask* streams,
                            const StreamSize* sizes, std::uint32_t codec, std::uint32_t count,
                            AeadTask* aead, ChecksumTask* checksums, std::uint32_t* record_sizes,
                            cudaStream_t stream);

// Puts the checksums into the headers.
cudaError_t put_checksums(const RecordTask* tasks, const std::uint32_t* checksums,
                          std::uint32_t count, cudaStream_t stream);

// A record that was opened: its body, to be checked against what was asked for.
struct OpenedTask {
  const Byte* body;
  Byte* plain;
  std::uint32_t body_size;
  std::uint32_t plain_room;
  std::uint32_t expected_checksum;
  std::uint32_t check_identity;
  std::uint32_t first_piece;
  std::uint32_t piece_max;
  Byte identity[32];
};

// What an opened body says, for the host.
struct OpenedRecord {
  std::uint32_t good;
  std::uint32_t codec;
  Byte identity[32];
};

// good: checksum and tag match, the identity is the expected one, and the body header does not
// contradict itself. Fills cuts for good bodies whose codec a device decodes; bodies of other
// codecs are not good.
cudaError_t check_bodies(const OpenedTask* tasks, const std::uint32_t* checksums,
                         const std::uint32_t* verdicts, std::uint32_t count, CutTask* cuts,
                         OpenedRecord* opened, cudaStream_t stream);

// The same for bodies that are sealed anew, of any codec: new_tasks[i].record + 40 is the body.
// Writes the new header, padding and tasks. A body that is not good gets tasks of size 0, and
// record_sizes[i] = 0. new_record_max: how long each record may become.
cudaError_t lay_out_reseal(const OpenedTask* tasks, const std::uint32_t* checksums,
                           const std::uint32_t* verdicts, const RecordTask* new_tasks,
                           const std::uint32_t* new_record_max, std::uint32_t count,
                           OpenedRecord* opened, AeadTask* aead, ChecksumTask* new_checksums,
                           std::uint32_t* record_sizes, cudaStream_t stream);

}  // namespace nacre::engine::cuda
