// SPDX-License-Identifier: Apache-2.0
// Records on the device: header, identity, padding and CRC around streams and bodies.
// record/record.h has the layout; seal.cpp has the same steps for the processor.
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

// The fields of a record that is to be sealed.
struct RecordTask {
  // Room for the largest record that can result. The address is 8 bytes past a multiple of 16, so
  // that the blocks of the body are aligned.
  Byte* record;
  Byte* aad;  // record_aad_size bytes of scratch
  std::uint32_t key;
  std::uint32_t epoch;
  std::uint32_t counter;
  std::uint32_t tag_size;
  std::uint32_t unit;    // the body's size is a multiple of this: 1, or the cipher's block size
  std::uint32_t padded;  // 1: the body's size is also rounded up as by Padmé
  Byte volume_id[16];
  Byte salt[16];
  Byte identity[32];
};

// Writes header and body header, zeros the padding, and writes the tasks for the body's encryption
// and the record's checksum, which later kernels run. record_sizes[i]: size of the whole record.
// The streams are at record + 84 already, or are written there later.
cudaError_t lay_out_records(const RecordTask* tasks, const StreamTask* streams,
                            const StreamSize* sizes, std::uint32_t codec, std::uint32_t count,
                            AeadTask* aead, ChecksumTask* checksums, std::uint32_t* record_sizes,
                            cudaStream_t stream);

// Puts the checksums into the headers.
cudaError_t put_checksums(const RecordTask* tasks, const std::uint32_t* checksums,
                          std::uint32_t count, cudaStream_t stream);

// The decrypted body of a record, to be checked against what the caller expects.
struct OpenedTask {
  const Byte* body;
  Byte* plain;  // where the plain bytes go
  std::uint32_t body_size;
  std::uint32_t plain_room;         // how many plain bytes have room
  std::uint32_t expected_checksum;  // of the record's header
  std::uint32_t check_identity;     // 0: any identity is right
  std::uint32_t first_piece;        // as in CutTask
  std::uint32_t piece_max;
  Byte identity[32];
};

// What the host learns of a body.
struct OpenedRecord {
  std::uint32_t good;  // checksum, tag and identity are right, and the body header is consistent
  std::uint32_t codec;
  Byte identity[32];  // the body's; set if checksum and tag match
};

// Checks bodies, and makes a CutTask for each; cuts[i].valid is 0 for a body that is not good.
// checksums and verdicts: results of the kernels before. (cut_streams() refuses codecs that no
// device decodes.)
cudaError_t check_bodies(const OpenedTask* tasks, const std::uint32_t* checksums,
                         const std::uint32_t* verdicts, std::uint32_t count, CutTask* cuts,
                         OpenedRecord* opened, cudaStream_t stream);

// Checks bodies that are to be sealed again, of any codec. The body is already at
// new_tasks[i].record + 40. Writes the new header and padding, and the tasks for later kernels. For
// a body that is not good, or whose new record would exceed new_record_max[i] bytes, the record is
// laid out with an empty body, opened[i].good becomes 0 and record_sizes[i] becomes 0.
cudaError_t lay_out_reseal(const OpenedTask* tasks, const std::uint32_t* checksums,
                           const std::uint32_t* verdicts, const RecordTask* new_tasks,
                           const std::uint32_t* new_record_max, std::uint32_t count,
                           OpenedRecord* opened, AeadTask* aead, ChecksumTask* new_checksums,
                           std::uint32_t* record_sizes, cudaStream_t stream);

}  // namespace nacre::engine::cuda
