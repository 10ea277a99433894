// SPDX-License-Identifier: Apache-2.0
// What fallocate(2) has reserved for a file: a row of the table xattrs, under the root's number and
// a name that no program can ask for (docs/FORMAT.md, "Reserved blocks").
//
//   key:   1 u64 | "nacre.reserved/" | inode, 16 hexadecimal digits
//   value: 1 | unwritten count v | range count v (1 … 2048) | range…
//   range: gap v (from the end of the one before; > 0 except in the first) | block count v (> 0)
//
//   key:   1 u64 | "nacre.reserved"
//   value: 1 | next session v
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/format/identifiers.h"

namespace nacre::metadata {

inline constexpr std::string_view reserved_mark_name = "nacre.reserved";
inline constexpr std::string_view reserved_name_prefix = "nacre.reserved/";
inline constexpr std::size_t reserved_range_count_max = 2048;

// Whether a row of the root in the table xattrs is no attribute, but one of these rows.
inline bool is_reserved_name(std::string_view name) {
  return name.starts_with(reserved_mark_name);
}

// Blocks [first, end) of a file. first < end.
struct BlockRange {
  std::uint64_t first = 0, end = 0;
  bool operator==(const BlockRange&) const = default;
};

struct ReservedRow {
  std::uint64_t unwritten_count = 0;  // blocks in the ranges that were not written yet
  std::vector<BlockRange> ranges;     // in order; no two touch
  bool operator==(const ReservedRow&) const = default;
};

std::string reserved_name(InodeNumber inode);
// Errors: corrupt.
Result<InodeNumber> decode_reserved_name(std::string_view name);
std::string encode(const ReservedRow& row);
Result<ReservedRow> decode_reserved_row(std::string_view value);

}  // namespace nacre::metadata
