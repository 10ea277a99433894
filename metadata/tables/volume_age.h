// SPDX-License-Identifier: Apache-2.0
// The age of a volume: how far its history has come, as its tables tell. A machine that keeps the
// age elsewhere can tell if the volume was put back to an older state, or if its log was cut below
// the durable state.
//
// Rows of write sessions are never removed, each has a salt that is never drawn twice, and each row
// is durable before the session writes anything else. So if a volume has the row of the newest
// session that was seen, it continues the state that was seen, unless changes of that session are
// lost. The count of changes tells that.
#pragma once

#include <cstdint>

#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::metadata {

struct VolumeAge {
  std::uint64_t session_count = 0;   // number of write sessions; the newest has this ordinal
  engine::SessionSalt session = {};  // the salt of the newest session; zeros: there was none yet
  std::uint64_t change_count = 0;    // Database::durable_change_count()
  bool operator==(const VolumeAge&) const = default;
};

// Returns the age of the committed state. Reads the rows of all sessions. Errors: corrupt, and
// those of reading.
Result<VolumeAge> read_volume_age(const Database& database);
// Whether the volume has had this session.
Result<bool> has_session(const Database& database, const engine::SessionSalt& salt);

}  // namespace nacre::metadata
