// SPDX-License-Identifier: Apache-2.0
// How far a volume's history has come, as its tables say it. Whoever remembers that elsewhere can
// tell when the volume was put back to an older state, or its log cut below what was durable.
//
// Rows of write sessions never go away, each has a salt that nobody draws twice, and its row is
// durable before anything that the session writes. So a volume that has the row of the newest
// session which was seen is a continuation of what was seen then, unless changes within that very
// session are gone: those are counted.
#pragma once

#include <cstdint>

#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::metadata {

struct VolumeAge {
  std::uint64_t session_count = 0;   // of write sessions; the newest has this ordinal
  engine::SessionSalt session = {};  // the newest; zeros: there was none yet
  std::uint64_t change_count = 0;    // Database::durable_change_count()
  bool operator==(const VolumeAge&) const = default;
};

// Of what is committed. Reads the rows of all sessions. corrupt, and the errors of reading.
Result<VolumeAge> read_volume_age(const Database& database);
// Whether the volume has had this session.
Result<bool> has_session(const Database& database, const engine::SessionSalt& salt);

}  // namespace nacre::metadata
