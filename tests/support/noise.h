// SPDX-License-Identifier: Apache-2.0
// Bytes that no codec makes smaller, the same for the same seed. Made by words: tests make
// megabytes of them, and are compiled without optimising.
#pragma once

#include <cstdint>
#include <string>

namespace nacre::tests {

std::string noise(std::size_t size, std::uint64_t seed);

}  // namespace nacre::tests
