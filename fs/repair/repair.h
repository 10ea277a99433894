// SPDX-License-Identifier: Apache-2.0
// Repairs a volume that is not mounted. The whole repair is planned first and the plan is saved;
// only then anything is changed. What a repair does:
//
//   db/                   if files are damaged, a new db/ is made from all that can be read
//                         (database_rebuild.h) and put in place; the old one stays next to it
//   superblock, keyring   a damaged, missing or older copy is replaced by the other one
//   names                 entries without inode are removed, inodes without entry get one in
//                         /lost+found; link counts, sizes of directories, parents, the orphans
//   inodes                if chunks or entries still tell of a file or directory whose row is gone,
//                         the row is made anew (owner root, mode 0600 or 0700)
//   chunks                rows that overlap, leave gaps or make no sense; bytes that cannot be
//                         recovered are recorded as *lost*, and reading them fails
//   records               all are opened; a row that names a damaged or missing record keeps the
//                         rest of the chunk; damaged stretches become records that no row names
//   segments              headers, committed sizes, live counts; lost rows come from the files
//   counters, totals, write sessions
//
// Bytes that the medium cannot read (an I/O error) stay as they are, because they may become
// readable again. To have them recorded as lost, copy the volume to a sound disk first. If db/ has
// such bytes, nothing is planned unless accept_unreadable is set.
//
// The caller holds the volume's lock: exclusively, or shared if nothing is applied.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fs/check/finding.h"
#include "fs/repair/database_rebuild.h"
#include "fs/repair/plan_hash.h"
#include "fs/repair/repair_plan.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

struct RepairOptions {
  // Replaces lost bytes, also those of earlier repairs, by holes, which read as zeros.
  bool drop_damaged = false;
  // Counts bytes of db/ that the medium cannot read as damaged, so that older rows take their
  // place.
  bool accept_unreadable = false;
  // The place for a new db/, if one must be made. Null: in the volume, which is then written to.
  // The caller of a dry run removes what is left here.
  std::shared_ptr<metadata::BackingDirectory> scratch = {};
  // The random bytes of the plan follow from it (plan_hash.h). None: a fresh one.
  std::optional<PlanSeed> seed = {};
};

struct RepairDraft {
  RepairPlan plan;
  FindingList left;                        // findings that no step repairs
  std::optional<DatabaseReport> database;  // set if db/ was made anew
};

// Reads everything and changes nothing, but for a folder that is made next to a damaged db/. Takes
// about 120 bytes of memory for each inode, the size of the plan, and, if db/ is damaged, 64 bytes
// for each record. Errors: those of Database::open() and of its reads; those of rebuild_database();
// out_of_memory.
Result<RepairDraft> plan_repair(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                const metadata::VolumeKeys& volume, engine::Engine& engine,
                                const RepairOptions& options, const ProgressFunction& progress);

// Applies all steps. Rows are written in groups, each of which is durable as a whole. However it
// ends, a new plan goes on from there.
Result<> apply_plan(const std::shared_ptr<metadata::BackingDirectory>& directory,
                    const metadata::VolumeKeys& volume, const RepairPlan& plan);

// Restores the state before the plan. Returns true if anything was changed. Error: not_permitted,
// with the first such place, if something is neither as the plan left it nor as it was before; then
// nothing is changed.
Result<bool> undo_plan(const std::shared_ptr<metadata::BackingDirectory>& directory,
                       const metadata::VolumeKeys& volume, const RepairPlan& plan);

}  // namespace nacre::fs
