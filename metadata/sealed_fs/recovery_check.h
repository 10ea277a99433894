// SPDX-License-Identifier: Apache-2.0
// The check before RocksDB opens the database. RocksDB takes a manifest as far as it can be read,
// and the logs that it finds. The witnesses in the logs tell whether that is all there was.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

struct RecoveryCheck {
  LogWitness witness;  // what the first log of the new session says
  // The manifest and the logs that count, by path. A later read must find the same: a last frame
  // that is read badly would pass for a torn one, and another file may have the name by then.
  std::map<std::string, FramesEnd, std::less<>> ends;
};

// Errors: tampered (a file of a number that no file of this volume has), missing (a file that
// CURRENT or a log names, or all logs), corrupt (a log or manifest that was longer once),
// rolled_back (CURRENT names an older manifest than a log does), and what reading the files gives.
// Does not look at logs that are of no use any more.
//
// With make_durable, what was read is on the medium afterwards, even if it was never synced (after
// a kill) or a sync of it failed. So the result may be written into a new log.
Result<RecoveryCheck> check_before_recovery(BackingDirectory& directory, std::string_view folder,
                                            const KeyTree& keys, bool make_durable);

// nacre backup brings the log of a new state as "NNNNNN.log.new" and a number, and renames it once
// the manifest next to it is that state's. docs/FORMAT.md, "Backup".
bool is_arriving_log(std::string_view name);
// Whether such a log stands in for the one that the manifest asks for: it holds no rows, and knows
// no more of the manifest than there is.
Result<bool> has_arrived_log(BackingDirectory& directory, std::string_view folder,
                             const KeyTree& keys);

}  // namespace nacre::metadata
