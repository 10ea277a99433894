// SPDX-License-Identifier: Apache-2.0
// Checks whether the tables of an unmounted volume agree with each other. It was written from
// metadata/format/rows.h alone, independently of fsck.
#pragma once

#include <memory>

#include "metadata/backing/backing.h"

namespace nacre::tests {

// Reports what is wrong as test failures. clean: the volume was closed, so there are no orphans.
void check_tables(const std::shared_ptr<metadata::BackingDirectory>& directory,
                  std::uint32_t chunk_size_bytes, bool clean);

}  // namespace nacre::tests
