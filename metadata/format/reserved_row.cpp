// SPDX-License-Identifier: Apache-2.0
#include "metadata/format/reserved_row.h"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "metadata/format/row_codec.h"

namespace nacre::metadata {

namespace {

constexpr std::uint64_t reserved_block_end_max = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::string reserved_name(InodeNumber inode) {
  return fmt::format("{}{:016x}", reserved_name_prefix, inode.value);
}

Result<InodeNumber> decode_reserved_name(std::string_view name) {
  InodeNumber inode;
  if (name.starts_with(reserved_name_prefix)) {
    const std::string_view digits = name.substr(reserved_name_prefix.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), inode.value, 16);
  }
  if (reserved_name(inode) != name) {
    return fail(ErrorCode::corrupt, "not the name of a row of reserved blocks");
  }
  return inode;
}

std::string encode(const ReservedRow& row) {
  RowWriter writer;
  writer.number(row.unwritten_count);
  writer.number(row.ranges.size());
  std::uint64_t end = 0;
  for (const BlockRange& range : row.ranges) {
    writer.number(range.first - end);
    writer.number(range.end - range.first);
    end = range.end;
  }
  return writer.take();
}

Result<ReservedRow> decode_reserved_row(std::string_view value) {
  RowReader reader(value, "reserved blocks");
  ReservedRow row;
  row.unwritten_count = reader.number();
  const std::uint64_t count = reader.number(1, reserved_range_count_max);
  std::uint64_t end = 0, sum = 0;
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
    const std::uint64_t gap = reader.number(i == 0 ? 0 : 1, reserved_block_end_max - end);
    const std::uint64_t first = end + gap;
    reader.require(first < reserved_block_end_max);
    if (reader.failed()) break;
    const std::uint64_t size = reader.number(1, reserved_block_end_max - first);
    end = first + size;
    sum += size;
    row.ranges.push_back({first, end});
  }
  reader.require(row.unwritten_count <= sum);
  NACRE_TRY(reader.finish());
  return row;
}

}  // namespace nacre::metadata
