// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 with 64 bits of output, as its authors define it. name_hash() of rows.h uses it.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::metadata {

std::uint64_t siphash_2_4(const std::array<Byte, 16>& key, ByteView message);

}  // namespace nacre::metadata
