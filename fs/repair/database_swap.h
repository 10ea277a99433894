// SPDX-License-Identifier: Apache-2.0
// A db/ that was made anew takes the old one's place, and back: which of the two is which, and the
// folders that interrupted repairs leave.
#pragma once

#include <memory>
#include <string>

#include "fs/repair/repair_plan.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

std::string database_folder_of(std::string_view plan_name);  // "db.NAME"

// Of the names, sizes and headers of a folder's files: none changes as long as nobody opens the
// database for writing.
Result<Bytes> fingerprint_of(metadata::BackingDirectory& directory, std::string_view folder);
// Of all rows; undone: as if the plan's row steps were taken back (null: as they are).
Result<Bytes> digest_of_rows(const std::shared_ptr<metadata::BackingDirectory>& directory,
                             const metadata::VolumeKeys& volume, const RepairPlan* undone);

enum class DatabaseState : std::uint8_t { before, after, other };
// Which database db/ is.
Result<DatabaseState> state_of_database(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const metadata::VolumeKeys& volume, const RepairPlan& plan, const DatabaseEdit& edit);
// Durable when it returns.
Result<> swap_databases(metadata::BackingDirectory& directory, const DatabaseEdit& edit);
// A folder with its files, if it is there.
Result<> remove_folder(metadata::BackingDirectory& directory, const std::string& folder);
// Ends what an interruption left: a db/ on its way, and new ones that never took its place.
Result<> tidy_databases(metadata::BackingDirectory& directory, const metadata::VolumeKeys& volume);

const DatabaseEdit* database_edit_of(const RepairPlan& plan);  // null: none

}  // namespace nacre::fs
