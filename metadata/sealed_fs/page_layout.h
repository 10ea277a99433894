// SPDX-License-Identifier: Apache-2.0
// All offset arithmetic of table files. Pure functions; tests/metadata/page_layout_test.cpp covers
// every size around every boundary.
//
// A table file is a header and pages of equal stored size; only the last may be shorter:
//   0                 64                       64 + 4096
//   | header          | page 0                 | page 1                 | …
// A page:
//   0            n          n + 16   n + 20   n + 24
//   | ciphertext | tag[16]  | state  | crc32  |          n = 4072; in the last page 0…4072
// state = generation | is_final << 31. The nonce is page index u64, generation u32: a page that is
// sealed again with other content takes the next generation. Exactly the last page is final; a file
// without content has one page with n = 0. The CRC covers salt, page index, ciphertext, tag, state.
//
// In a padded file (FileHeader::is_padded) all pages are full, and their count says no more than a
// Padmé length: zeros follow the content, and the last 8 plain bytes of the last page are its size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/record/record.h"

namespace nacre::metadata {

inline constexpr std::uint32_t page_size_bytes = 4096;
inline constexpr std::uint32_t page_tag_size_bytes = 16;
inline constexpr std::uint32_t page_overhead_bytes = page_tag_size_bytes + 4 + 4;
inline constexpr std::uint32_t page_plain_bytes = page_size_bytes - page_overhead_bytes;
inline constexpr std::uint64_t first_page_offset = 64;  // the file header's size
inline constexpr std::uint32_t page_final_bit = 1u << 31;

// For a file that holds plain_size bytes.
constexpr std::uint64_t page_count(std::uint64_t plain_size) {
  return plain_size == 0 ? 1 : (plain_size - 1) / page_plain_bytes + 1;
}
constexpr std::uint64_t page_offset(std::uint64_t page) {
  return first_page_offset + page * page_size_bytes;
}
constexpr std::uint64_t page_of(std::uint64_t plain_offset) {
  return plain_offset / page_plain_bytes;
}
constexpr std::uint64_t page_begin(std::uint64_t page) {  // as a plain offset
  return page * page_plain_bytes;
}
// Plain bytes of one page of a file that holds plain_size bytes.
constexpr std::uint32_t plain_bytes_of_page(std::uint64_t page, std::uint64_t plain_size) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(page_plain_bytes, plain_size - page_begin(page)));
}
constexpr std::uint64_t stored_size_of(std::uint64_t plain_size) {
  return first_page_offset + plain_size + page_count(plain_size) * page_overhead_bytes;
}
// The inverse. None if no file of whole pages has this size.
constexpr std::optional<std::uint64_t> plain_size_of(std::uint64_t stored_size) {
  if (stored_size < first_page_offset + page_overhead_bytes) return std::nullopt;
  const std::uint64_t body = stored_size - first_page_offset;
  const std::uint64_t pages = (body - 1) / page_size_bytes + 1;
  const std::uint64_t last = body - (pages - 1) * page_size_bytes;
  if (last < page_overhead_bytes || (last == page_overhead_bytes && pages > 1)) return std::nullopt;
  return body - pages * page_overhead_bytes;
}

inline constexpr std::uint32_t padded_size_field_bytes = 8;

// For a padded file that holds plain_size bytes.
inline std::uint64_t padded_page_count(std::uint64_t plain_size) {
  const std::uint64_t pages = page_count(plain_size + padded_size_field_bytes);
  return round_up(engine::padded_size(engine::Padding::padme, pages * page_size_bytes),
                  std::uint64_t{page_size_bytes}) /
         page_size_bytes;
}
// For a padded file of this stored size. None if no file of full pages has this size.
constexpr std::optional<std::uint64_t> full_page_count(std::uint64_t stored_size) {
  if (stored_size <= first_page_offset) return std::nullopt;
  const std::uint64_t body = stored_size - first_page_offset;
  if (body % page_size_bytes != 0) return std::nullopt;
  return body / page_size_bytes;
}

static_assert(stored_size_of(0) == first_page_offset + page_overhead_bytes);
static_assert(stored_size_of(page_plain_bytes) == page_offset(1));
static_assert(stored_size_of(page_plain_bytes + 1) == page_offset(1) + page_overhead_bytes + 1);

}  // namespace nacre::metadata
