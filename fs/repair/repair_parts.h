// SPDX-License-Identifier: Apache-2.0
// What the parts of a repair share. Only for the files *_repair.cpp and plan_repair.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "fs/repair/plan_draft.h"
#include "fs/repair/repair.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

struct RepairContext {
  metadata::BackingDirectory& directory;
  const metadata::VolumeKeys& volume;
  engine::Engine& engine;
  const RepairOptions& options;
  const ProgressFunction& progress;
  PlanDraft& draft;
  FindingList& left;
  std::uint64_t next_version_number = 0;  // 0: no session yet

  const metadata::Database& database() const { return draft.database(); }
  std::uint32_t chunk_size_bytes() const { return volume.superblock.chunk_size_bytes; }
  void leave(Verdict verdict, std::string what, std::string file = {}) {
    left.add({.verdict = verdict, .what = std::move(what), .file = std::move(file), .paths = {}});
  }
  // For bytes that the repair itself writes: of a write session that the plan enters.
  Result<metadata::RecordVersion> next_version();
  Result<> scan(
      metadata::Table table,
      const std::function<void(std::string_view key, std::string_view value)>& visit) const;
};

// In the order in which they run; each finds the volume as those before it will have left it.
Result<> repair_copies(RepairContext& context);      // superblock and keyring
Result<> repair_name_hash(RepairContext& context);   // the key that names are found by
Result<> repair_names(RepairContext& context);       // inodes, dentries, orphans, xattrs
Result<> repair_chunk_rows(RepairContext& context);  // chunks, inlined
Result<> repair_segment_rows(RepairContext& context);
Result<> repair_records(RepairContext& context);   // rows against what lies in the segments
Result<> repair_accounts(RepairContext& context);  // live counts, data bytes, counters

// --- Lost bytes of one chunk.

// One piece of a chunk's row: the base (no patch) or a patch.
using IsBadPiece = std::function<bool(const metadata::ChunkPatch* patch)>;
// The row without its bad pieces: what only they gave is lost, what a later piece gives is not.
// Only pieces within the chunk count.
metadata::ChunkRow lose_pieces(const metadata::ChunkRow& row, const IsBadPiece& is_bad,
                               std::uint32_t chunk_size_bytes);
// As the last chunk of a file that ends there.
void cut_row(metadata::ChunkRow& row, std::uint32_t size);
// The row's value, or a hole's when nothing but zeros is left of it. Adds what the row says is lost
// beyond what old said (none: nothing) to the plan; where that is asked for, zeros take the place
// of all that is lost.
Result<std::string> finish_row(RepairContext& context, metadata::InodeNumber inode,
                               metadata::ChunkIndex index, metadata::ChunkRow row,
                               const metadata::ChunkRow* old, Verdict verdict,
                               const std::string& why);

}  // namespace nacre::fs
