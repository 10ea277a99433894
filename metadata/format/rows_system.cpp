// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes values of the tables segments and system. rows.h has the layouts.
#include <algorithm>

#include "metadata/format/row_codec.h"
#include "metadata/format/rows.h"

namespace nacre::metadata {

namespace {

constexpr std::uint64_t session_ordinal_max = (1ull << (64 - record_version_session_shift)) - 1;

}  // namespace

std::string encode(const SegmentRow& row) {
  RowWriter writer;
  writer.number(row.committed_size);
  writer.number(row.live_bytes);
  writer.number(row.epoch);
  writer.raw(as_text(row.salt));
  return writer.take();
}

Result<SegmentRow> decode_segment_row(std::string_view value) {
  RowReader reader(value, "segment");
  SegmentRow row;
  row.committed_size = reader.number();
  row.live_bytes = reader.number();
  row.epoch = reader.number_32();
  const std::string_view salt = reader.raw(row.salt.size());
  NACRE_TRY(reader.finish());
  std::copy(salt.begin(), salt.end(), row.salt.begin());
  return row;
}

std::string encode(const SessionRow& row) {
  RowWriter writer;
  writer.number(row.ordinal);
  writer.number(row.epoch);
  writer.signed_number(row.opened_seconds);
  return writer.take();
}

Result<SessionRow> decode_session_row(std::string_view value) {
  RowReader reader(value, "session");
  SessionRow row;
  row.ordinal = reader.number(1, session_ordinal_max);
  row.epoch = reader.number_32();
  row.opened_seconds = reader.signed_number();
  NACRE_TRY(reader.finish());
  return row;
}

std::string encode(const RotationRow& row) {
  RowWriter writer;
  writer.number(row.paused ? 1 : 0);
  writer.number(row.recompress ? 1 : 0);
  writer.number(row.rate_bytes_per_second);
  writer.number(row.total_bytes);
  return writer.take();
}

Result<RotationRow> decode_rotation_row(std::string_view value) {
  RowReader reader(value, "rotation");
  RotationRow row;
  row.paused = reader.number(0, 1) == 1;
  row.recompress = reader.number(0, 1) == 1;
  row.rate_bytes_per_second = reader.number();
  row.total_bytes = reader.number();
  NACRE_TRY(reader.finish());
  return row;
}

std::string encode_u64(std::uint64_t value) {
  RowWriter writer;
  writer.number(value);
  return writer.take();
}

Result<std::uint64_t> decode_u64(std::string_view value) {
  RowReader reader(value, "counter");
  const std::uint64_t number = reader.number();
  NACRE_TRY(reader.finish());
  return number;
}

std::string encode_genuine(const std::array<Byte, 32>& digest) {
  std::string value(1, '\1');
  value.append(as_text(digest));
  return value;
}

Result<std::array<Byte, 32>> decode_genuine(std::string_view value) {
  std::array<Byte, 32> digest{};
  if (value.size() != 1 + digest.size() || value.front() != '\1') {
    return fail(ErrorCode::corrupt, "the digest of a record is malformed");
  }
  std::copy(value.begin() + 1, value.end(), digest.begin());
  return digest;
}

}  // namespace nacre::metadata
