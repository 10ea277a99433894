// SPDX-License-Identifier: Apache-2.0
// Which chunks are worth merging with their patches when there is time for it.
#pragma once

#include "metadata/format/rows.h"

namespace nacre::fs {

// Many patches, or large ones: each costs a read a record of its own, and what lies under them is
// stored in vain.
bool is_worth_merging(const metadata::ChunkRow& row);

}  // namespace nacre::fs
