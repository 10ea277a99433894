// SPDX-License-Identifier: Apache-2.0
#include "fs/store/content_id.h"

#include <concepts>
#include <functional>
#include <string_view>

namespace nacre::fs {

namespace {

using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::LostRange;

void append(std::string& parts, std::unsigned_integral auto value) {
  for (std::size_t i = 0; i < sizeof(value); ++i)
    parts.push_back(static_cast<char>(value >> (8 * i)));
}

// The first byte says whether there is a base and how many patches there are; all parts have fixed
// sizes and a fixed order, and the lost ranges take what is left. So the bytes can be read back,
// and different rows have different bytes.
constexpr std::uint8_t base_flag = 0x80;
static_assert(metadata::patch_count_max < base_flag);

}  // namespace

ContentId::ContentId(const ChunkRow& row) {
  append(parts_, static_cast<std::uint8_t>(row.patches.size() | (row.base ? base_flag : 0u)));
  if (row.base) {
    append(parts_, row.base->version.value);
    append(parts_, row.base->valid_size);
  }
  for (const ChunkPatch& patch : row.patches) {
    append(parts_, patch.version.value);
    append(parts_, patch.offset);
    append(parts_, patch.valid_size);
  }
  for (const LostRange& range : row.lost) {
    append(parts_, range.offset);
    append(parts_, range.size);
  }
}

std::size_t ContentId::hash() const noexcept {
  return std::hash<std::string_view>{}(parts_);
}

std::size_t ContentId::heap_size_bytes() const noexcept {
  static const std::size_t within = std::string().capacity();
  return parts_.capacity() > within ? parts_.capacity() + 1 : 0;
}

}  // namespace nacre::fs
