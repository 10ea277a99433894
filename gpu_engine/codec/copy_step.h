// SPDX-License-Identifier: Apache-2.0
// Copies of a fixed size, for code that copies more bytes than it needs and overwrites the surplus.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Copies size bytes. All of them are read before the first is written, so from and to may overlap.
template <std::size_t size>
inline void copy_step(Byte* to, const Byte* from) {
  std::array<Byte, size> bytes;
  std::memcpy(bytes.data(), from, size);
  std::memcpy(to, bytes.data(), size);
}

}  // namespace nacre::engine
