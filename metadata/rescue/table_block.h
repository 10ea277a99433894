// SPDX-License-Identifier: Apache-2.0
// The blocks of RocksDB's table files (block-based, format version 5), as pure functions.
//
//   stored:   content, compressed or not | compression u8 (0 none, 4 LZ4) | checksum u32
//   LZ4:      plain size v32 | one LZ4 block
//   content:  entry… | offset of each restart point u32 … | their count u32
//   entry of rows:      shared v32 | rest size v32 | value size v32 | rest | value
//   entry of an index:  shared v32 = 0 | rest size v32 | rest | offset v64 | size v64
// The key of a row is the user's and u64 little-endian: sequence << 8 | type (0 erased, 1 put).
// Checksums are not verified: every byte comes from a page whose tag was right. Functions return
// none for bytes that no block can have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"

namespace nacre::metadata {

// A row with its number in the order of all changes of the database.
struct VersionedRow {
  std::string key;
  std::uint64_t sequence = 0;
  std::optional<std::string> value;  // none if erased
};
using VersionedRows = std::vector<VersionedRow>;

struct BlockHandle {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // of the stored content
};
// The size of the trailer after the content.
inline constexpr std::size_t block_trailer_size_bytes = 5;

// stored is content and trailer.
std::optional<Bytes> expand_block(ByteView stored);
std::optional<VersionedRows> parse_rows(ByteView content);
// Returns the handles of the blocks of rows, which must lie side by side from the file's start.
std::optional<std::vector<BlockHandle>> parse_index(ByteView content);
std::optional<std::map<std::string, std::string>> parse_properties(ByteView content);

// A block of rows of unknown size that begins here.
struct FrontBlock {
  VersionedRows rows;
  BlockHandle handle;  // its offset is 0
};
std::optional<FrontBlock> parse_front_block(ByteView bytes);

// The end of every table file: checksum kind u8 | handle of the meta index | handle of the index |
// zeros | format version u32 | magic u64.
inline constexpr std::size_t table_footer_size_bytes = 53;
struct TableFooter {
  BlockHandle meta_index, index;
};
std::optional<TableFooter> parse_footer(ByteView footer);
// Returns the handle in a value that holds nothing else.
std::optional<BlockHandle> parse_handle(std::string_view value);

}  // namespace nacre::metadata
