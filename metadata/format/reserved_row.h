// SPDX-License-Identifier: Apache-2.0
// What fallocate(2) set aside for a file: a row of the table xattrs, under the root's number and a
// name that no program can ask for. So programs that know nothing of it keep it and leave it alone
// (docs/FORMAT.md, "Space that is set aside").
//
//   key:   1 u64 | "nacre.reserved/" | inode, 16 hexadecimal digits
//   value: 1 | held bytes v | unwritten bytes v | count v (1 … 2048) | range…
//   range: gap v (from the end of the one before; > 0 but for the first) | chunk count v (> 0)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/format/identifiers.h"

namespace nacre::metadata {

inline constexpr std::string_view reserved_name_prefix = "nacre.reserved/";
inline constexpr std::size_t reserved_range_count_max = 2048;

// Chunks of a file.
struct ChunkRange {
  std::uint64_t first = 0, count = 0;
  std::uint64_t end() const { return first + count; }
  bool operator==(const ChunkRange&) const = default;
};
struct ReservedRow {
  std::uint64_t held_bytes = 0;       // on the disk, beyond what is stored of these chunks
  std::uint64_t unwritten_bytes = 0;  // plain, that these chunks hold no data for
  std::vector<ChunkRange> ranges;     // in order; none touches another
  bool operator==(const ReservedRow&) const = default;
};

std::string reserved_name(InodeNumber inode);
Result<InodeNumber> decode_reserved_name(std::string_view name);
std::string encode(const ReservedRow& row);
Result<ReservedRow> decode_reserved_row(std::string_view value);

}  // namespace nacre::metadata
