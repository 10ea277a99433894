// SPDX-License-Identifier: Apache-2.0
// Learns the names of sealed records by opening them, since names stand only in the sealed bodies.
#pragma once

#include <span>
#include <vector>

#include "fs/store/record_keys.h"
#include "gpu_engine/engine.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

// Returns one result for each record, in order. Checks session, CRC, tag and codec stream. Errors:
// corrupt, tampered, out_of_memory. A record of more than chunk_size_bytes plain bytes is corrupt,
// too. Thread-safe.
std::vector<Result<metadata::RecordName>> names_of_records(engine::Engine& engine,
                                                           const RecordKeys& keys,
                                                           std::uint32_t chunk_size_bytes,
                                                           std::span<const ByteView> records);

}  // namespace nacre::fs
