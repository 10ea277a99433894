// SPDX-License-Identifier: Apache-2.0
// Sizes on the command line: a number, with K, M or G (also KiB, MiB, GiB) for powers of 1024.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// Error: invalid_argument for anything else, and for a size that does not fit. A plain number
// counts in plain_unit_bytes.
Result<std::uint64_t> parse_size(std::string_view text, std::uint64_t plain_unit_bytes = 1);

}  // namespace nacre::tools
