// SPDX-License-Identifier: Apache-2.0
// Lists the files that a backup copies from a volume which is not mounted.
#pragma once

#include "fs/backup/backup.h"

namespace nacre::fs {

// The caller holds the volume's lock, so that no other process writes to it. Without keys it cannot
// be known which files of db/ are needed, so all are listed but for logs of messages and unfinished
// files. The source is clean if it has one manifest and one log that holds witnesses only, as
// closing a volume leaves it.
// Errors: missing if there is no db/CURRENT; unsupported if an interrupted backup lies there; io.
Result<BackupSource> list_closed_volume(metadata::BackingDirectory& directory);

}  // namespace nacre::fs
