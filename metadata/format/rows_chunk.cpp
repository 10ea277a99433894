// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes values of the table chunks. rows.h has the layouts. There is a row for each
// chunk of each file, so each byte counts: a chunk with a base and no patches takes about 20.
#include "gpu_engine/base/limits.h"
#include "metadata/format/row_codec.h"
#include "metadata/format/rows.h"

namespace nacre::metadata {

namespace {

// The second byte of the value.
constexpr std::uint8_t kind_hole = 0;
constexpr std::uint8_t kind_zeros = 1;  // a chunk without a base
constexpr std::uint8_t kind_base = 2;
constexpr std::uint8_t kind_lost_run = 3;
constexpr std::uint8_t kind_lost_ranges = 4;

constexpr std::uint64_t file_size_max = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t session_max = (1ull << (64 - record_version_session_shift)) - 1;
constexpr std::uint64_t sequence_max = (1ull << record_version_session_shift) - 1;

void write(RowWriter& writer, RecordVersion version) {
  writer.number(version.value >> record_version_session_shift);
  writer.number(version.value & sequence_max);
}

RecordVersion read_version(RowReader& reader) {
  const std::uint64_t session = reader.number(0, session_max);
  const std::uint64_t sequence = reader.number(0, sequence_max);
  return {session << record_version_session_shift | sequence};
}

// There is no segment 0, so it stands for "no location", and nothing follows it.
void write(RowWriter& writer, const std::optional<RecordLocation>& location) {
  writer.number(location ? location->segment.value : 0);
  if (!location) return;
  writer.number(location->offset);
  writer.number(location->stored_size);
}

std::optional<RecordLocation> read_location(RowReader& reader) {
  RecordLocation location;
  location.segment.value = reader.number();
  if (location.segment.value == 0) return std::nullopt;
  location.offset = reader.number(0, file_size_max);
  location.stored_size = reader.number_32(1);
  reader.require(location.offset <= file_size_max - location.stored_size);
  return location;
}

// The field is the number of bytes that no longer count, not of those that do, because it is mostly
// 0.
void write_sizes(RowWriter& writer, std::uint32_t plain_size, std::uint32_t valid_size) {
  writer.number(plain_size);
  writer.number(plain_size - valid_size);
}

ChunkBase read_base(RowReader& reader) {
  ChunkBase base;
  const auto location = read_location(reader);
  reader.require(location.has_value());
  base.location = location.value_or(RecordLocation{});
  base.version = read_version(reader);
  base.plain_size = reader.number_32(0, chunk_size_bytes_max);
  base.valid_size = base.plain_size - reader.number_32(0, base.plain_size);
  return base;
}

ChunkPatch read_patch(RowReader& reader) {
  ChunkPatch patch;
  patch.offset = reader.number_32(0, chunk_size_bytes_max);
  patch.plain_size = reader.number_32(1, chunk_size_bytes_max);
  patch.valid_size = patch.plain_size - reader.number_32(0, patch.plain_size);
  reader.require(patch.valid_size > 0);
  reader.require(patch.offset + patch.plain_size <= chunk_size_bytes_max);
  patch.version = read_version(reader);
  patch.location = read_location(reader);
  return patch;
}

std::vector<LostRange> read_lost(RowReader& reader) {
  std::vector<LostRange> ranges;
  // Two ranges never touch, so a chunk has room for half as many as it has bytes.
  const std::uint64_t count = reader.number(1, chunk_size_bytes_max / 2);
  std::uint32_t end = 0;
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
    LostRange range;
    range.offset = end + reader.number_32(i == 0 ? 0 : 1, chunk_size_bytes_max - end);
    range.size = reader.number_32(1, chunk_size_bytes_max);
    reader.require(range.size <= chunk_size_bytes_max - range.offset);
    end = range.offset + range.size;
    ranges.push_back(range);
    if (end > chunk_size_bytes_max) break;  // the reader has failed then
  }
  return ranges;
}

void write_lost(RowWriter& writer, const std::vector<LostRange>& ranges) {
  writer.byte(kind_lost_ranges);
  writer.number(ranges.size());
  std::uint32_t end = 0;
  for (const LostRange& range : ranges) {
    writer.number(range.offset - end);
    writer.number(range.size);
    end = range.end();
  }
}

}  // namespace

std::string encode(const ChunkRow& row) {
  RowWriter writer;
  if (!row.lost.empty()) write_lost(writer, row.lost);
  writer.byte(row.base ? kind_base : kind_zeros);
  if (row.base) {
    write(writer, std::optional(row.base->location));
    write(writer, row.base->version);
    write_sizes(writer, row.base->plain_size, row.base->valid_size);
  }
  writer.number(row.patches.size());
  for (const ChunkPatch& patch : row.patches) {
    writer.number(patch.offset);
    write_sizes(writer, patch.plain_size, patch.valid_size);
    write(writer, patch.version);
    write(writer, patch.location);
  }
  return writer.take();
}

std::string encode(const HoleRow& row) {
  RowWriter writer;
  writer.byte(kind_hole);
  writer.number(row.chunk_count);
  return writer.take();
}

std::string encode(const LostRow& row) {
  RowWriter writer;
  writer.byte(kind_lost_run);
  writer.number(row.chunk_count);
  return writer.take();
}

Result<ChunkMapRow> decode_chunk_map_row(std::string_view value) {
  RowReader reader(value, "chunk");
  ChunkMapRow row;
  std::uint8_t kind = reader.byte(kind_lost_ranges);
  if (kind == kind_hole) {
    row.hole = HoleRow{.chunk_count = reader.number(1)};
  } else if (kind == kind_lost_run) {
    row.lost = LostRow{.chunk_count = reader.number(1)};
  } else {
    row.chunk.emplace();
    if (kind == kind_lost_ranges) {
      row.chunk->lost = read_lost(reader);
      kind = reader.byte(kind_base);
      reader.require(kind != kind_hole);
    }
    if (kind == kind_base) row.chunk->base = read_base(reader);
    const std::uint64_t count = reader.number(0, patch_count_max);
    for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
      row.chunk->patches.push_back(read_patch(reader));
    }
  }
  NACRE_TRY(reader.finish());
  return row;
}

}  // namespace nacre::metadata
