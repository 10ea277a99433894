// SPDX-License-Identifier: Apache-2.0
// Finds out whether db/ is damaged, and names the sources of rows (database_rebuild.h).
#include <fmt/format.h>

#include "fs/repair/database_rebuild.h"
#include "fs/repair/database_swap.h"

namespace nacre::fs {

std::string_view to_string(RowSource source) {
  switch (source) {
    case RowSource::older_row:
      return "older row";
    case RowSource::checkpoint:
      return "checkpoint";
    case RowSource::records:
      return "records";
    case RowSource::guess:
      return "made anew";
  }
  return "unknown";
}

Result<std::unique_ptr<metadata::DatabaseRescue>> find_database_damage(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const std::shared_ptr<const metadata::KeyTree>& keys, bool accept_unreadable) {
  auto opened = metadata::DatabaseRescue::open(directory, keys);
  if (!opened && opened.error().code == ErrorCode::not_found) {
    // A dry run leaves everything as it is, so it finds db/ under the name that a swap gave it.
    if (is_swap_interrupted(*directory)) {
      return fail(ErrorCode::missing,
                  fmt::format("{}: a repair, or the undoing of one, was interrupted while it moved "
                              "db/; a repair that changes something puts db/ back first",
                              directory->description()));
    }
    return fail(ErrorCode::missing,
                fmt::format("{}: db/ is missing. Salvage the volume into another directory: "
                            "fsck.nacre --salvage TARGET",
                            directory->description()));
  }
  NACRE_ASSIGN(auto rescue, std::move(opened));
  for (const Error& error : rescue->damage()) {
    if (accept_unreadable || verdict_of(error.code) != Verdict::unreadable) continue;
    return fail(
        error.code,
        fmt::format("{}: the medium cannot read it, so its content may still be whole. "
                    "Copy the volume to a sound disk and repair the copy; or have rows that "
                    "cannot be read count as lost: fsck.nacre --repair --accept-unreadable",
                    error.message));
  }
  if (rescue->damage().empty()) rescue = nullptr;
  return rescue;
}

}  // namespace nacre::fs
