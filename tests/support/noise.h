// SPDX-License-Identifier: Apache-2.0
// Bytes that no codec makes smaller, the same for the same seed. They are made word by word, since
// tests make megabytes of them and are compiled without optimization.
#pragma once

#include <cstdint>
#include <string>

namespace nacre::tests {

std::string noise(std::size_t size, std::uint64_t seed);

}  // namespace nacre::tests
