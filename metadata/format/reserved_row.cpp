// SPDX-License-Identifier: Apache-2.0
#include "metadata/format/reserved_row.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "metadata/format/row_codec.h"

namespace nacre::metadata {

namespace {

constexpr std::size_t reserved_digit_count = 16;
constexpr std::uint64_t reserved_chunk_max = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::string reserved_name(InodeNumber inode) {
  return fmt::format("{}{:016x}", reserved_name_prefix, inode.value);
}

Result<InodeNumber> decode_reserved_name(std::string_view name) {
  const auto bad = [&] {
    return fail(ErrorCode::corrupt, "not the name of space that is set aside");
  };
  if (!name.starts_with(reserved_name_prefix)) return bad();
  const std::string_view digits = name.substr(reserved_name_prefix.size());
  if (digits.size() != reserved_digit_count) return bad();
  InodeNumber inode;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), inode.value, 16);
  if (error != std::errc() || end != digits.data() + digits.size()) return bad();
  if (reserved_name(inode) != name) return bad();
  return inode;
}

std::string encode(const ReservedRow& row) {
  RowWriter writer;
  writer.number(row.held_bytes);
  writer.number(row.unwritten_bytes);
  writer.number(row.ranges.size());
  std::uint64_t end = 0;
  for (const ChunkRange& range : row.ranges) {
    writer.number(range.first - end);
    writer.number(range.count);
    end = range.end();
  }
  return writer.take();
}

Result<ReservedRow> decode_reserved_row(std::string_view value) {
  RowReader reader(value, "reserved");
  ReservedRow row;
  row.held_bytes = reader.number();
  row.unwritten_bytes = reader.number();
  const std::uint64_t count = reader.number(1, reserved_range_count_max);
  std::uint64_t end = 0;
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
    const std::uint64_t gap = reader.number(i == 0 ? 0 : 1, reserved_chunk_max - end);
    const std::uint64_t first = end + gap;
    row.ranges.push_back({first, reader.number(1, reserved_chunk_max - first + 1)});
    end = row.ranges.back().end();
    if (end > reserved_chunk_max) reader.require(false);
  }
  NACRE_TRY(reader.finish());
  return row;
}

}  // namespace nacre::metadata
