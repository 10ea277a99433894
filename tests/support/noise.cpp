// SPDX-License-Identifier: Apache-2.0
#include "tests/support/noise.h"

#include <algorithm>
#include <cstring>

namespace nacre::tests {

// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
std::string noise(std::size_t size, std::uint64_t seed) {
  std::string text(size, '\0');
  std::uint64_t state = seed * 0xd1342543de82ef95u;
  for (std::size_t at = 0; at < size; at += sizeof state) {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t word = state;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    word ^= word >> 31;
    std::memcpy(text.data() + at, &word, std::min(sizeof word, size - at));
  }
  return text;
}

}  // namespace nacre::tests
