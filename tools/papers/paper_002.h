// SPDX-License-Identifier: Apache-2.0
// What the text of Harrison and Waldron says about their figures: the highest values, and what
// payloads cost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace nacre::tools {

inline constexpr double mega = 1e6;
// Bits a second of one message, and (with transfers) of the best payload.
inline constexpr double published_002_kernel = 15423 * mega;
inline constexpr double published_002_with_transfer = 6914 * mega;
inline constexpr double published_002_payload = 5810 * mega;
// From table 1.
inline constexpr std::uint64_t published_002_read_count = 5'000'000'000;

// Figure 4.
struct Published002Overhead {
  std::size_t block_count;  // of a message
  std::optional<double> percent;
};
inline constexpr std::array<Published002Overhead, 4> published_002_overheads = {
    {{16, 45.0}, {512, 22.0}, {2048, {}}, {16384, 16.0}}};

}  // namespace nacre::tools
