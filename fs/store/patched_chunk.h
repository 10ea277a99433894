// SPDX-License-Identifier: Apache-2.0
// What rows of several records look like: content that does not compress, which is stored in parts,
// and chunks that are worth merging with their patches when there is time for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "metadata/format/rows.h"

namespace nacre::fs {

// What does not compress gains nothing from being one record, and costs who reads 4 KiB at random
// all of it. So it is stored in parts, a record each: patches without a base that lie side by side
// from the chunk's start, all of one size but the last.
inline constexpr std::uint32_t part_size_bytes_min = 16u << 10;
inline constexpr std::uint32_t part_count_max = 8;
constexpr std::uint32_t part_size_bytes(std::uint32_t chunk_size_bytes) {
  return std::max(part_size_bytes_min, chunk_size_bytes / part_count_max);
}
// How many of the row's patches are such parts: they are its first ones.
std::size_t count_parts(const metadata::ChunkRow& row);

// Puts the patch over all others; where nothing lies under it, among the parts at its place.
void add_patch(metadata::ChunkRow& row, const metadata::ChunkPatch& patch);

// The row with nothing but what gives bytes of [from, to), where that is less than half of what the
// row's records hold; none: it is all to be read. Says nothing of what is lost.
std::optional<metadata::ChunkRow> row_of_range(const metadata::ChunkRow& row, std::uint32_t from,
                                               std::uint32_t to);

// Many patches, or large ones: each costs a read a record of its own, and what lies under them is
// stored in vain. Parts do not count.
bool is_worth_merging(const metadata::ChunkRow& row);

}  // namespace nacre::fs
