// SPDX-License-Identifier: Apache-2.0
// What is checked before RocksDB opens the database: RocksDB takes a manifest as far as it can be
// read and the logs that it finds. Whether that is all there was, the witnesses in the logs know.
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
  // By path, the manifest and the logs that count. What is read later must be the same: a last
  // frame that is read badly would pass for a torn one, and the file may be another one by then.
  std::map<std::string, FramesEnd, std::less<>> ends;
};

// Errors: tampered (a file of a number that no file of this volume has), missing (a file that
// CURRENT or a log names, or all logs), corrupt (a log or manifest that was longer once),
// rolled_back (CURRENT names an older manifest than a log does), and what reading the files gives.
// Logs that are of no use any more are not looked at.
//
// make_durable: what was read is on the medium afterwards, so that the result may be written into a
// new log, even when what is found was never synced (after a kill) or a sync of it failed.
Result<RecoveryCheck> check_before_recovery(BackingDirectory& directory, std::string_view folder,
                                            const KeyTree& keys, bool make_durable);

// nacre backup brings the log of a new state as "NNNNNN.log.new" and a number, and renames it once
// the manifest beside it is that state's. docs/FORMAT.md, "Backup".
bool is_arriving_log(std::string_view name);
// Whether one is there that stands in for the log that the manifest asks for: it holds no rows, and
// knows no more of the manifest than there is.
Result<bool> has_arrived_log(BackingDirectory& directory, std::string_view folder,
                             const KeyTree& keys);

}  // namespace nacre::metadata
