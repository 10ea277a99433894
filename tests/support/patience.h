// SPDX-License-Identifier: Apache-2.0
// How long a test waits for an event that comes at once on any machine: longer than a machine
// stands still, shorter than the time after which ctest ends the test. Only a hang takes so long.
#pragma once

#include <chrono>

namespace nacre::tests {

inline constexpr std::chrono::minutes patience{5};

}  // namespace nacre::tests
