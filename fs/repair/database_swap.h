// SPDX-License-Identifier: Apache-2.0
// Swaps the new db/ with the old one, and back; tells which of the two is in place; and removes the
// folders that interrupted repairs leave.
#pragma once

#include <memory>
#include <string>

#include "fs/repair/repair_plan.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

std::string database_folder_of(std::string_view plan_name);  // "db.NAME"

// A digest of the names, sizes and headers of a folder's files. It stays the same for as long as
// the database is not opened for writing.
Result<Bytes> fingerprint_of(metadata::BackingDirectory& directory, std::string_view folder);
// A digest of all bytes of a folder's files. Bytes that the medium cannot read count as such, so
// the digest is another one once they can be read.
Result<Bytes> digest_of_content(metadata::BackingDirectory& directory, std::string_view folder);
// A digest of all rows. With undone it is that of the rows with the plan's row steps undone; null
// means the rows as they are.
Result<Bytes> digest_of_rows(const std::shared_ptr<metadata::BackingDirectory>& directory,
                             const metadata::VolumeKeys& volume, const RepairPlan* undone);

enum class DatabaseState : std::uint8_t { before, after, other };
// Tells which database is in db/.
Result<DatabaseState> state_of_database(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const metadata::VolumeKeys& volume, const RepairPlan& plan, const DatabaseEdit& edit);
// Durable when it returns.
Result<> swap_databases(metadata::BackingDirectory& directory, const DatabaseEdit& edit);
// Removes a folder and its files. No error if it does not exist.
Result<> remove_folder(metadata::BackingDirectory& directory, const std::string& folder);
// Whether a swap was interrupted, so that a database lies under a temporary name.
bool is_swap_interrupted(metadata::BackingDirectory& directory);
// Ends an interrupted swap, and removes new databases that never took db/'s place.
Result<> tidy_databases(metadata::BackingDirectory& directory, const metadata::VolumeKeys& volume);

const DatabaseEdit* database_edit_of(const RepairPlan& plan);  // null: none

}  // namespace nacre::fs
