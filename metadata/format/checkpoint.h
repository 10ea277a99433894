// SPDX-License-Identifier: Apache-2.0
// Checkpoints: the rows of the tables in sealed records, from which the tables can be made anew.
// docs/FORMAT.md, "Checkpoint".
//
//   row:   key = "checkpoint/" number u64
//          value: 1 | closed v | root | part count v | part…
//          root, part: segment v | offset v | stored size v | version | plain size v
//   root:  1 | written s | settled version | rows of each section v × 7 | stream size v |
//          part count v | (version | plain size v)…
//   version: session ordinal v | place v
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"

namespace nacre::metadata {

// The number of a checkpoint: a record version that was drawn for it. No other checkpoint or record
// ever has it, and later checkpoints have higher ones.
struct CheckpointNumber {
  std::uint64_t value = 0;
  auto operator<=>(const CheckpointNumber&) const = default;
};

// The plain bytes of each part except the last.
inline constexpr std::uint32_t checkpoint_part_size_bytes = 1u << 20;
inline constexpr std::uint32_t checkpoint_part_count_max = 1u << 16;

// The sections of the stream, numbered from 1.
enum class CheckpointSection : std::uint8_t {
  system = 1,
  inodes,
  dentries,
  chunks,
  inlined,
  xattrs,
  orphans
};
inline constexpr std::size_t checkpoint_section_count = 7;

struct CheckpointPlace {
  RecordLocation location;
  RecordVersion version;
  std::uint32_t plain_size = 0;
};
// The records of a checkpoint, and where they lie.
struct CheckpointRow {
  // The session at whose end the volume was closed without a change since; 0 if that has not
  // happened.
  std::uint64_t closed_session = 0;
  CheckpointPlace root;
  std::vector<CheckpointPlace> parts;  // in order
};
std::string checkpoint_key(CheckpointNumber number);
Result<CheckpointNumber> decode_checkpoint_key(std::string_view key);
std::string encode(const CheckpointRow& row);
Result<CheckpointRow> decode_checkpoint_row(std::string_view value);

RecordName root_name(CheckpointNumber number, RecordVersion version);
RecordName part_name(CheckpointNumber number, std::uint64_t part, RecordVersion version);

struct CheckpointRoot {
  std::int64_t written_seconds = 0;  // since 1970
  // Every record of a lower version is named by the checkpoint's rows, or is dead.
  RecordVersion settled;
  std::array<std::uint64_t, checkpoint_section_count> row_counts = {};
  std::uint64_t stream_size = 0;
  struct Part {
    RecordVersion version;
    std::uint32_t plain_size = 0;
  };
  std::vector<Part> parts;  // their plain sizes add up to stream_size
};
std::string encode(const CheckpointRoot& root);
Result<CheckpointRoot> decode_checkpoint_root(std::string_view plain);

}  // namespace nacre::metadata
