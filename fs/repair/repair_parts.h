// SPDX-License-Identifier: Apache-2.0
// Types that the parts of a repair share; private to *_repair.cpp and plan_repair.cpp.
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
  PlanDraw& draw;
  std::uint64_t next_version_number = 0;  // 0: no session yet

  const metadata::Database& database() const { return draft.database(); }
  std::uint32_t chunk_size_bytes() const { return volume.superblock.chunk_size_bytes; }
  void leave(Verdict verdict, std::string what, std::string file = {}) {
    left.add({.verdict = verdict, .what = std::move(what), .file = std::move(file), .paths = {}});
  }
  // The version of bytes that the repair itself writes, in a write session that the plan adds.
  Result<metadata::RecordVersion> next_version();
  Result<> scan(
      metadata::Table table,
      const std::function<void(std::string_view key, std::string_view value)>& visit) const;
};

// The parts in the order in which they run. Each reads the volume as the parts before it leave it.
Result<> repair_copies(RepairContext& context);      // superblock and keyring
Result<> repair_name_hash(RepairContext& context);   // the key by which names are hashed
Result<> repair_names(RepairContext& context);       // inodes, dentries, orphans, xattrs
Result<> repair_chunk_rows(RepairContext& context);  // chunks, inlined
Result<> repair_segment_rows(RepairContext& context);
Result<> repair_records(RepairContext& context);   // rows compared with the records in segments
Result<> repair_accounts(RepairContext& context);  // live counts, data bytes, counters

// Lost bytes of one chunk:

// Whether a piece of a chunk's row is bad. Null stands for the base, otherwise it is a patch.
using IsBadPiece = std::function<bool(const metadata::ChunkPatch* patch)>;
// Returns the row without its bad pieces. Bytes that a later piece covers are not lost. Only pieces
// within the chunk count.
metadata::ChunkRow lose_pieces(const metadata::ChunkRow& row, const IsBadPiece& is_bad,
                               std::uint32_t chunk_size_bytes);
// Cuts the row to size bytes, as the last chunk of a file.
void cut_row(metadata::ChunkRow& row, std::uint32_t size);
// Returns the row's value, or that of a hole if only zeros are left. Adds bytes that row calls lost
// and old does not (null: none) to the plan. If the options say so, zeros replace all lost bytes.
Result<std::string> finish_row(RepairContext& context, metadata::InodeNumber inode,
                               metadata::ChunkIndex index, metadata::ChunkRow row,
                               const metadata::ChunkRow* old, Verdict verdict,
                               const std::string& why);

}  // namespace nacre::fs
