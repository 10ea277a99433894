// SPDX-License-Identifier: Apache-2.0
// What Tosoni and Sorio publish: the table of section V and the profiles of figures 4 and 5. Times
// in seconds, sizes in bytes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace nacre::tools {

struct Published000 {
  double overall, speedup;
  std::optional<double> with_transfer = {}, speedup_with_transfer = {};
};
struct Published000Size {
  std::size_t size;
  std::array<Published000, 4> ways;  // Sarwate, Parallel 1, 2 and 3
};
inline constexpr std::array<Published000Size, 3> published_000 = {{
    {128 * 128,
     {{{0.1e-3, 1},
       {0.1e-3, 1, 0.1e-3, 1},
       {0.028e-3, 3.5, 0.04e-3, 2.2},
       {0.022e-3, 4.4, 0.04e-3, 2.2}}}},
    {256 * 256,
     {{{0.3e-3, 1},
       {0.3e-3, 1, 0.3e-3, 1},
       {0.04e-3, 7.5, 0.1e-3, 4.9},
       {0.032e-3, 9.1, 0.057e-3, 5.2}}}},
    {128 * 128 * 128,
     {{{8.3e-3, 1},
       {9.8e-3, 0.8, 10.1e-3, 0.8},
       {0.81e-3, 10.2, 1.1e-3, 7.7},
       {0.8e-3, 10.5, 1.1e-3, 7.8}}}},
}};

inline constexpr std::size_t published_000_stage_size = 128 * 128 * 128;
struct Published000Stage {
  const char* name;
  std::optional<double> first, second;  // reduction: by whole blocks, by half blocks
};
inline constexpr std::array<Published000Stage, 4> published_000_stages = {{
    {"crc32kernel", 674.50e-6, 648.42e-6},
    {"xorkernel, three launches", 132.70e-6, 47.200e-6},
    {"copy of the value to the host", 1.8880e-6, 1.9520e-6},
    {"copy of the message to the device", {}, {}},
}};

}  // namespace nacre::tools
