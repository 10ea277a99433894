// SPDX-License-Identifier: Apache-2.0
// One warp per record: lane 0 decides, and all lanes write. There are few bytes around a stream, so
// nothing here is worth tuning.
#include "gpu_engine/cuda/kernels/record_tasks.h"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int block_threads = 128;
constexpr std::uint32_t chunk_size_max = 1u << 20;
constexpr std::uint32_t codec_none = 0;
constexpr std::uint32_t magic = 0x4345524e;  // "NREC"
constexpr std::uint32_t version = 1;

std::uint32_t blocks_for_warps(std::uint32_t count) {
  return (count * lane_count + block_threads - 1) / block_threads;
}

__device__ std::uint32_t warp_index() {
  return (blockIdx.x * blockDim.x + threadIdx.x) / lane_count;
}

__device__ void store_u32(Byte* to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i)
    to[i] = static_cast<Byte>(value >> (8 * i));
}

__device__ std::uint32_t load_u32(const Byte* from) {
  return from[0] | from[1] << 8 | from[2] << 16 | static_cast<std::uint32_t>(from[3]) << 24;
}

// CRC-32 (IEEE) of a few bytes, bit by bit.
__device__ std::uint32_t short_crc32(const Byte* bytes, std::uint32_t size) {
  constexpr std::uint32_t polynomial = 0xedb88320;
  std::uint32_t crc = 0xffffffff;
  for (std::uint32_t i = 0; i < size; ++i) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ (polynomial & (0u - (crc & 1)));
  }
  return ~crc;
}

// Computes the same as padded_size() and sealed_body_size() of record/record.cpp.
__device__ std::uint32_t sealed_size(std::uint32_t body_size, std::uint32_t padded,
                                     std::uint32_t unit) {
  if (padded != 0 && body_size >= 2) {
    const int exponent = 31 - __clz(static_cast<int>(body_size));
    const int significant = 32 - __clz(exponent);
    const int cleared = exponent - significant;
    if (cleared > 0) {
      const std::uint32_t step = 1u << cleared;
      body_size = (body_size + step - 1) & ~(step - 1);
    }
  }
  return (body_size + unit - 1) / unit * unit;
}

// Writes the header, the additional data, and the tasks (the nonce included): everything of a
// record except the bytes of its body. Returns the record's size. Per lane.
__device__ std::uint32_t describe_record(const RecordTask& task, std::uint32_t body_size,
                                         AeadTask& aead, ChecksumTask& checksum) {
  const std::uint32_t record_size = record_header_size + body_size + task.tag_size;
  Byte header[record_header_size] = {};
  store_u32(header, magic);
  header[4] = version;
  store_u32(header + 8, record_size);
  store_u32(header + 12, task.epoch);
  for (int i = 0; i < 16; ++i)
    header[16 + i] = task.salt[i];
  store_u32(header + 32, task.counter);
  for (std::uint32_t i = 0; i < record_header_size; ++i)
    task.record[i] = header[i];
  for (int i = 0; i < 16; ++i)
    task.aad[i] = task.volume_id[i];
  for (std::uint32_t i = 0; i < record_crc_offset; ++i)
    task.aad[16 + i] = header[i];
  Byte* const body = task.record + record_header_size;
  aead = {.in = body,
          .out = body,
          .size = body_size,
          .aad = task.aad,
          .aad_size = record_aad_size,
          .key = task.key,
          .nonce = {},
          .tag = body + body_size};
  store_u32(aead.nonce + 4, task.counter);
  checksum = {.data = body,
              .size = body_size + task.tag_size,
              .before = short_crc32(header, record_crc_offset)};
  return record_size;
}

__device__ void zero_bytes(Byte* bytes, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first + this_lane(); i < end; i += lane_count)
    bytes[i] = 0;
}

__global__ void lay_out_records_kernel(const RecordTask* tasks, const StreamTask* streams,
                                       const StreamSize* sizes, std::uint32_t codec,
                                       std::uint32_t count, AeadTask* aead, ChecksumTask* checksums,
                                       std::uint32_t* record_sizes) {
  const std::uint32_t i = warp_index();
  if (i >= count) return;
  const RecordTask& task = tasks[i];
  const StreamSize size = sizes[i];
  Byte* const body = task.record + record_header_size;
  const std::uint32_t unpadded = record_body_header_size + size.size;
  const std::uint32_t body_size = sealed_size(unpadded, task.padded, task.unit);
  zero_bytes(body, unpadded, body_size);
  body[12 + this_lane()] = task.identity[this_lane()];
  if (this_lane() != 0) return;
  store_u32(body, size.coded != 0 ? codec : codec_none);
  store_u32(body + 4, streams[i].plain_size);
  store_u32(body + 8, size.size);
  record_sizes[i] = describe_record(task, body_size, aead[i], checksums[i]);
}

__global__ void put_checksums_kernel(const RecordTask* tasks, const std::uint32_t* checksums,
                                     std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) store_u32(tasks[i].record + record_crc_offset, checksums[i]);
}

struct Body {
  std::uint32_t codec;
  std::uint32_t plain_size;
  std::uint32_t stream_size;
};

// Whether a body is good (OpenedRecord). All lanes of a warp call it. body is set if checksum and
// tag match.
__device__ bool check_body(const OpenedTask& task, std::uint32_t checksum, std::uint32_t verdict,
                           Body& body, OpenedRecord& opened) {
  if (checksum != task.expected_checksum || verdict == 0 ||
      task.body_size < record_body_header_size) {
    if (this_lane() == 0) opened.good = 0;
    return false;
  }
  const Byte found = task.body[12 + this_lane()];
  const bool other = task.check_identity != 0 && found != task.identity[this_lane()];
  opened.identity[this_lane()] = found;
  const std::uint32_t word = load_u32(task.body);
  body = {word & 0xff, load_u32(task.body + 4), load_u32(task.body + 8)};
  const bool good = __ballot_sync(all_lanes, other) == 0 && word >> 8 == 0 &&
                    body.stream_size <= task.body_size - record_body_header_size &&
                    body.plain_size <= chunk_size_max && body.plain_size <= task.plain_room;
  if (this_lane() == 0) {
    opened.good = good;
    opened.codec = body.codec;
  }
  return good;
}

__global__ void check_bodies_kernel(const OpenedTask* tasks, const std::uint32_t* checksums,
                                    const std::uint32_t* verdicts, std::uint32_t count,
                                    CutTask* cuts, OpenedRecord* opened) {
  const std::uint32_t i = warp_index();
  if (i >= count) return;
  const OpenedTask& task = tasks[i];
  Body body = {};
  const bool good = check_body(task, checksums[i], verdicts[i], body, opened[i]);
  if (this_lane() != 0) return;
  cuts[i] = {.stream = task.body + record_body_header_size,
             .plain = task.plain,
             .stream_size = body.stream_size,
             .plain_size = good ? body.plain_size : 0,
             .first_piece = task.first_piece,
             .piece_max = task.piece_max,
             .codec = body.codec,
             .valid = good};
}

__global__ void lay_out_reseal_kernel(const OpenedTask* tasks, const std::uint32_t* checksums,
                                      const std::uint32_t* verdicts, const RecordTask* new_tasks,
                                      const std::uint32_t* new_record_max, std::uint32_t count,
                                      OpenedRecord* opened, AeadTask* aead,
                                      ChecksumTask* new_checksums, std::uint32_t* record_sizes) {
  const std::uint32_t i = warp_index();
  if (i >= count) return;
  const RecordTask& task = new_tasks[i];
  Body body = {};
  bool good = check_body(tasks[i], checksums[i], verdicts[i], body, opened[i]);
  const std::uint32_t unpadded = record_body_header_size + body.stream_size;
  const std::uint32_t body_size = good ? sealed_size(unpadded, task.padded, task.unit) : 0;
  good = good && record_header_size + body_size + task.tag_size <= new_record_max[i];
  if (good) zero_bytes(task.record + record_header_size, unpadded, body_size);
  if (this_lane() != 0) return;
  opened[i].good = good;
  const std::uint32_t record_size =
      describe_record(task, good ? body_size : 0, aead[i], new_checksums[i]);
  record_sizes[i] = good ? record_size : 0;
}

}  // namespace

cudaError_t lay_out_records(const RecordTask* tasks, const StreamTask* streams,
                            const StreamSize* sizes, std::uint32_t codec, std::uint32_t count,
                            AeadTask* aead, ChecksumTask* checksums, std::uint32_t* record_sizes,
                            cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  lay_out_records_kernel<<<blocks_for_warps(count), block_threads, 0, stream>>>(
      tasks, streams, sizes, codec, count, aead, checksums, record_sizes);
  return cudaGetLastError();
}

cudaError_t put_checksums(const RecordTask* tasks, const std::uint32_t* checksums,
                          std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  put_checksums_kernel<<<(count + block_threads - 1) / block_threads, block_threads, 0, stream>>>(
      tasks, checksums, count);
  return cudaGetLastError();
}

cudaError_t check_bodies(const OpenedTask* tasks, const std::uint32_t* checksums,
                         const std::uint32_t* verdicts, std::uint32_t count, CutTask* cuts,
                         OpenedRecord* opened, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  check_bodies_kernel<<<blocks_for_warps(count), block_threads, 0, stream>>>(
      tasks, checksums, verdicts, count, cuts, opened);
  return cudaGetLastError();
}

cudaError_t lay_out_reseal(const OpenedTask* tasks, const std::uint32_t* checksums,
                           const std::uint32_t* verdicts, const RecordTask* new_tasks,
                           const std::uint32_t* new_record_max, std::uint32_t count,
                           OpenedRecord* opened, AeadTask* aead, ChecksumTask* new_checksums,
                           std::uint32_t* record_sizes, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  lay_out_reseal_kernel<<<blocks_for_warps(count), block_threads, 0, stream>>>(
      tasks, checksums, verdicts, new_tasks, new_record_max, count, opened, aead, new_checksums,
      record_sizes);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
