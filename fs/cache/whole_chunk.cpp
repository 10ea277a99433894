// SPDX-License-Identifier: Apache-2.0
#include "fs/cache/whole_chunk.h"

#include "fs/store/patched_chunk.h"
#include "gpu_engine/base/check.h"
#include "gpu_engine/codec/sample.h"

namespace nacre::fs {

namespace {

// If a record is larger than this share of its plain bytes, the next chunk goes in parts. If parts
// are smaller than the other share, the next chunk goes as one record.
constexpr std::uint64_t eighths_of_parts_min = 7;
constexpr std::uint64_t eighths_of_whole_max = 6;

bool goes_in_parts(FileCache& cache, const FileData& file, ByteView plain) {
  const auto own = file.codec();
  const engine::Codec codec = own ? own->codec : cache.store().codec();
  return codec == engine::Codec::none || file.prefers_parts() || !engine::looks_compressible(plain);
}

}  // namespace

using metadata::ChunkBase;
using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::RecordKind;

ChunkRow seal_whole(FileCache& cache, const FileData& file, ChunkIndex index, ByteView plain,
                    std::vector<SealRequest>& requests) {
  NACRE_CHECK(plain.size() <= cache.chunk_size_bytes(), "a chunk of {} bytes has {}",
              cache.chunk_size_bytes(), plain.size());
  const auto codec = file.codec();
  const std::size_t part_size = part_size_bytes(cache.chunk_size_bytes());
  const auto size = static_cast<std::uint32_t>(plain.size());
  if (size <= part_size || !goes_in_parts(cache, file, plain)) {
    requests.push_back(
        SealRequest{RecordName{file.inode(), index, {}, 0, RecordKind::chunk}, plain, codec});
    return ChunkRow{.base = ChunkBase{.plain_size = size, .valid_size = size}};
  }
  ChunkRow row;
  while (!plain.empty()) {
    const ByteView part = plain.first(std::min(plain.size(), part_size));
    const auto offset = size - static_cast<std::uint32_t>(plain.size());
    const auto part_bytes = static_cast<std::uint32_t>(part.size());
    requests.push_back(
        SealRequest{RecordName{file.inode(), index, {}, offset, RecordKind::patch}, part, codec});
    row.patches.push_back(
        ChunkPatch{.offset = offset, .plain_size = part_bytes, .valid_size = part_bytes});
    plain = plain.subspan(part.size());
  }
  return row;
}

void name_records(ChunkRow& row, FileData& file, std::span<const SealedRecord> records) {
  NACRE_CHECK(records.size() == (row.base ? 1 : row.patches.size()),
              "{} records are named in a row for {} patches", records.size(), row.patches.size());
  std::uint64_t plain = 0, stored = 0;
  for (const SealedRecord& record : records)
    stored += record.location.stored_size;
  if (row.base) {
    row.base->location = records.front().location;
    row.base->version = records.front().version;
    plain = row.base->plain_size;
    if (plain > part_size_bytes_min && stored * 8 > plain * eighths_of_parts_min)
      file.set_prefers_parts(true);
    return;
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    row.patches[i].location = records[i].location;
    row.patches[i].version = records[i].version;
    plain += row.patches[i].plain_size;
  }
  if (stored * 8 < plain * eighths_of_whole_max) file.set_prefers_parts(false);
}

}  // namespace nacre::fs
