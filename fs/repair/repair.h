// SPDX-License-Identifier: Apache-2.0
// Repairs a volume that is not mounted: plans all of it first, writes the plan down, and only then
// changes anything. What a repair does:
//
//   db/                   where files of it are damaged: made anew beside it from all that can be
//   read
//                         (database_rebuild.h), and put in its place; the old one stays beside it
//   superblock, keyring   a damaged, missing or older copy is replaced by the other one
//   names                 entries without inode go, inodes without entry get one in /lost+found;
//                         link counts, sizes of directories, parents, the list of orphans
//   inodes                a row that is gone is made anew (root's, 0600 or 0700) where chunks or
//                         entries still tell of a file or directory
//   chunks                rows that overlap, leave gaps or make no sense; what cannot be had any
//                         more becomes a fact of its own, *lost*: reading it fails
//   records               all are opened; rows that name a damaged or missing one keep the rest of
//                         the chunk. Damaged stretches get a header and a checksum of their own, so
//                         that they are records that nobody names
//   segments              headers, committed sizes, live counts; rows from what the files say
//   counters, totals, write sessions
//
// What a medium cannot read (an I/O error) stays as it is: it may come back. Whoever wants it
// stated as lost copies the volume to a sound disk first. Of db/ it must be said that it counts as
// lost; else nothing is planned.
//
// The caller holds the volume's lock: exclusive, or shared when nothing is applied.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fs/check/finding.h"
#include "fs/repair/database_rebuild.h"
#include "fs/repair/repair_plan.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

struct RepairOptions {
  // What is lost, now or by an earlier repair, is replaced by holes, which read as zeros.
  bool drop_damaged = false;
  // What the medium cannot read of db/ counts as damaged: older rows take its place.
  bool accept_unreadable = false;
  // Where a new db/ is made, if one must be; none: in the volume, which is written to then. What a
  // dry run leaves here is its caller's to remove.
  std::shared_ptr<metadata::BackingDirectory> scratch = {};
};

struct RepairDraft {
  RepairPlan plan;
  FindingList left;                        // what no step repairs
  std::optional<DatabaseReport> database;  // when db/ was made anew
};

// Reads everything and changes nothing: but a folder is made beside a damaged db/. Memory: about
// 120 bytes an inode, and the plan; of a damaged db/ also 64 bytes a record. Errors: those of
// Database::open() and of its reads, of rebuild_database(), out_of_memory.
Result<RepairDraft> plan_repair(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                const metadata::VolumeKeys& volume, engine::Engine& engine,
                                const RepairOptions& options, const ProgressFunction& progress);

// Makes all the steps, rows in groups that are each durable as a whole. However it ends, a new plan
// goes on from there.
Result<> apply_plan(const std::shared_ptr<metadata::BackingDirectory>& directory,
                    const metadata::VolumeKeys& volume, const RepairPlan& plan);

// Puts back what was there before; true when anything had to be. Changes nothing unless all of it
// is as the plan left it, or already as before: not_permitted, with the first that is neither.
Result<bool> undo_plan(const std::shared_ptr<metadata::BackingDirectory>& directory,
                       const metadata::VolumeKeys& volume, const RepairPlan& plan);

}  // namespace nacre::fs
