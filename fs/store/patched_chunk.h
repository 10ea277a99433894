// SPDX-License-Identifier: Apache-2.0
// The shapes of rows that name several records: content that does not compress, which is stored in
// parts, and chunks that are worth merging with their patches when there is time for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "metadata/format/rows.h"

namespace nacre::fs {

// Content that does not compress gains nothing from being one record, and a program that reads 4
// KiB at random would have to wait for all of it. So it is stored in parts, each a record: patches
// without a base that lie next to each other from the chunk's start, all of one size but the last.
inline constexpr std::uint32_t part_size_bytes_min = 16u << 10;
inline constexpr std::uint32_t part_count_max = 8;
constexpr std::uint32_t part_size_bytes(std::uint32_t chunk_size_bytes) {
  return std::max(part_size_bytes_min, chunk_size_bytes / part_count_max);
}
// The number of the row's patches that are such parts. They are its first ones.
std::size_t count_parts(const metadata::ChunkRow& row);

// Puts the patch over all others. If no other patch lies under it, it goes among the parts at its
// place.
void add_patch(metadata::ChunkRow& row, const metadata::ChunkPatch& patch);

// The row with only those records that give bytes of [from, to), if they hold less than half of the
// bytes of the row's records. None if the row should be read as a whole. Does not look at lost
// ranges.
std::optional<metadata::ChunkRow> row_of_range(const metadata::ChunkRow& row, std::uint32_t from,
                                               std::uint32_t to);

// Whether the row has many patches, or large ones. Each patch costs a read a record of its own, and
// the bytes under it are stored in vain. Parts do not count.
bool is_worth_merging(const metadata::ChunkRow& row);

}  // namespace nacre::fs
