// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the row and the root of a checkpoint. checkpoint.h has the layouts.
#include "metadata/format/checkpoint.h"

#include "metadata/format/row_codec.h"

namespace nacre::metadata {

namespace {

constexpr std::size_t number_size_bytes = 8;
constexpr std::uint64_t checkpoint_session_max = (1ull << (64 - record_version_session_shift)) - 1;
constexpr std::uint64_t place_max = (1ull << record_version_session_shift) - 1;
constexpr std::uint64_t checkpoint_size_max = std::numeric_limits<std::int64_t>::max();

void write_part(RowWriter& writer, RecordVersion version) {
  writer.number(version.value >> record_version_session_shift);
  writer.number(version.value & place_max);
}

RecordVersion read_part_version(RowReader& reader) {
  const std::uint64_t session = reader.number(0, checkpoint_session_max);
  const std::uint64_t place = reader.number(0, place_max);
  return {session << record_version_session_shift | place};
}

void write_part(RowWriter& writer, const CheckpointPlace& place) {
  writer.number(place.location.segment.value);
  writer.number(place.location.offset);
  writer.number(place.location.stored_size);
  write_part(writer, place.version);
  writer.number(place.plain_size);
}

CheckpointPlace read_place(RowReader& reader) {
  CheckpointPlace place;
  place.location.segment.value = reader.number(1);
  place.location.offset = reader.number(0, checkpoint_size_max);
  place.location.stored_size = reader.number_32(1);
  reader.require(place.location.offset <= checkpoint_size_max - place.location.stored_size);
  place.version = read_part_version(reader);
  place.plain_size = reader.number_32(1, checkpoint_part_size_bytes);
  return place;
}

}  // namespace

std::string checkpoint_key(CheckpointNumber number) {
  return std::string(system_key_checkpoint_prefix) + inode_key(InodeNumber{number.value});
}

Result<CheckpointNumber> decode_checkpoint_key(std::string_view key) {
  if (!key.starts_with(system_key_checkpoint_prefix) ||
      key.size() != system_key_checkpoint_prefix.size() + number_size_bytes) {
    return fail(ErrorCode::corrupt, "not the key of a checkpoint");
  }
  NACRE_ASSIGN(const auto number,
               decode_inode_key(key.substr(system_key_checkpoint_prefix.size())));
  return CheckpointNumber{number.value};
}

std::string encode(const CheckpointRow& row) {
  RowWriter writer;
  writer.number(row.closed_session);
  write_part(writer, row.root);
  writer.number(row.parts.size());
  for (const CheckpointPlace& part : row.parts)
    write_part(writer, part);
  return writer.take();
}

Result<CheckpointRow> decode_checkpoint_row(std::string_view value) {
  RowReader reader(value, "checkpoint");
  CheckpointRow row;
  row.closed_session = reader.number(0, checkpoint_session_max);
  row.root = read_place(reader);
  const std::uint64_t count = reader.number(1, checkpoint_part_count_max);
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i)
    row.parts.push_back(read_place(reader));
  NACRE_TRY(reader.finish());
  return row;
}

RecordName root_name(CheckpointNumber number, RecordVersion version) {
  return {.inode = {number.value}, .version = version, .kind = RecordKind::checkpoint_root};
}

RecordName part_name(CheckpointNumber number, std::uint64_t part, RecordVersion version) {
  return {.inode = {number.value},
          .chunk = {part},
          .version = version,
          .kind = RecordKind::checkpoint_part};
}

std::string encode(const CheckpointRoot& root) {
  RowWriter writer;
  writer.signed_number(root.written_seconds);
  write_part(writer, root.settled);
  for (const std::uint64_t count : root.row_counts)
    writer.number(count);
  writer.number(root.stream_size);
  writer.number(root.parts.size());
  for (const auto& part : root.parts) {
    write_part(writer, part.version);
    writer.number(part.plain_size);
  }
  return writer.take();
}

Result<CheckpointRoot> decode_checkpoint_root(std::string_view plain) {
  RowReader reader(plain, "checkpoint root");
  CheckpointRoot root;
  root.written_seconds = reader.signed_number();
  root.settled = read_part_version(reader);
  for (std::uint64_t& count : root.row_counts)
    count = reader.number();
  root.stream_size = reader.number();
  const std::uint64_t count = reader.number(1, checkpoint_part_count_max);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
    CheckpointRoot::Part part{.version = read_part_version(reader)};
    part.plain_size = reader.number_32(1, checkpoint_part_size_bytes);
    reader.require(i + 1 == count || part.plain_size == checkpoint_part_size_bytes);
    sum += part.plain_size;
    root.parts.push_back(part);
  }
  reader.require(sum == root.stream_size);
  NACRE_TRY(reader.finish());
  return root;
}

}  // namespace nacre::metadata
