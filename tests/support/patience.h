// SPDX-License-Identifier: Apache-2.0
// How long a test waits for an event that comes at once on any machine: longer than a busy machine
// may stall, and shorter than the time limit of ctest. Only a hang takes this long.
#pragma once

#include <chrono>

namespace nacre::tests {

inline constexpr std::chrono::minutes patience{5};

}  // namespace nacre::tests
