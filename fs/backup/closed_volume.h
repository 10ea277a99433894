// SPDX-License-Identifier: Apache-2.0
// What a backup copies of a volume that nobody writes to: everything that may count, as it lies.
#pragma once

#include "fs/backup/backup.h"

namespace nacre::fs {

// The caller keeps writers away. Without keys nobody knows which files of db/ count, so all do but
// logs of messages and unfinished files. Clean: one manifest, and one log whose frames are all
// witnesses, as closing a volume leaves it.
// Errors: missing (no db/CURRENT), unsupported (an interrupted backup lies there), io.
Result<BackupSource> list_closed_volume(metadata::BackingDirectory& directory);

}  // namespace nacre::fs
