// SPDX-License-Identifier: Apache-2.0
// What sealed records are, by opening them: their names stand in their sealed bodies alone.
#pragma once

#include <span>
#include <vector>

#include "fs/store/record_keys.h"
#include "gpu_engine/engine.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

// One result a record, in order. Checks session, CRC, tag and codec stream. Errors: corrupt,
// tampered, out_of_memory; corrupt also for a record of more than chunk_size_bytes plain bytes.
// Thread-safe.
std::vector<Result<metadata::RecordName>> names_of_records(engine::Engine& engine,
                                                           const RecordKeys& keys,
                                                           std::uint32_t chunk_size_bytes,
                                                           std::span<const ByteView> records);

}  // namespace nacre::fs
