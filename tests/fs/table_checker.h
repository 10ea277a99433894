// SPDX-License-Identifier: Apache-2.0
// Whether the tables of an unmounted volume agree with each other: written apart from fsck, from
// metadata/format/rows.h alone.
#pragma once

#include <memory>

#include "metadata/backing/backing.h"

namespace nacre::tests {

// Reports what is wrong as test failures. clean: the volume was closed, so there are no orphans.
void check_tables(const std::shared_ptr<metadata::BackingDirectory>& directory,
                  std::uint32_t chunk_size_bytes, bool clean);

}  // namespace nacre::tests
