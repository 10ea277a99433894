// SPDX-License-Identifier: Apache-2.0
// Copies of a fixed size, for decoders that copy too many bytes and overwrite the surplus.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Reads all bytes before it writes one, so from and to may overlap.
template <std::size_t size>
inline void copy_step(Byte* to, const Byte* from) {
  std::array<Byte, size> bytes;
  std::memcpy(bytes.data(), from, size);
  std::memcpy(to, bytes.data(), size);
}

}  // namespace nacre::engine
