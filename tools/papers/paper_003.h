// SPDX-License-Identifier: Apache-2.0
// What Guan and Li publish: files (figures 7 and 12) and their times (figures 8 to 11 and 13 to
// 16), in seconds; sizes in units of 1,024 bytes. A 0 is the report's: less than a tick of its
// clock.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace nacre::tools {

inline constexpr double minute = 60, hour = 3600, day = 86400;
inline constexpr double ms = 1e-3;

struct Published003Direction {
  std::optional<double> cpu = {}, gpu = {}, improvement = {};
};
struct Published003Row {
  const char* file;
  std::size_t size;
  std::size_t copies;  // how many files of that size
  Published003Direction forward, back;
};

constexpr std::size_t kib(double count) {
  return static_cast<std::size_t>(count * 1024);
}
constexpr std::size_t mib(double count) {
  return static_cast<std::size_t>(count * 1024 * 1024);
}

// Figures 7 and 8.
inline constexpr std::array<Published003Row, 6> published_003_des = {{
    {"README.txt", kib(2.71), 1, {10.0 * ms, 6.15 * ms, 1.63}, {10.0 * ms, 5.95 * ms, 1.68}},
    {"resume.pdf", kib(96.1), 1, {220 * ms, 12.5 * ms, 17.6}, {220 * ms, 18.4 * ms, 12.0}},
    {"AES", kib(592), 1, {1.37, 33.8 * ms, 40.6}, {1.36, 33.6 * ms, 40.5}},
    {"stillife.exr", mib(3.85), 1, {8.94, 195 * ms, 45.7}, {9.02, 202 * ms, 44.7}},
    {"GPU_Proj_Crypto_Part.zip", mib(18.1), 1, {41.4, 958 * ms, 43.2}, {41.8, 799 * ms, 52.3}},
    {"primeV7.in", mib(78.9), 1, {3.73 * minute, 4.35, 51.5}, {3.77 * minute, 4.65, 48.6}},
}};

// Figure 9.
inline constexpr std::array<Published003Row, 6> published_003_aes = {{
    {"README.txt", kib(2.71), 1, {0.0, 78.4 * ms, {}}, {0.0, 77.7 * ms, {}}},
    {"resume.pdf", kib(96.1), 1, {30.0 * ms, 81.1 * ms, 0.37}, {30.0 * ms, 78.9 * ms, 0.38}},
    {"AES", kib(592), 1, {170 * ms, 86.5 * ms, 1.96}, {170 * ms, 86.2 * ms, 1.97}},
    {"stillife.exr", mib(3.85), 1, {1.07, 145 * ms, 7.36}, {1.06, 143 * ms, 7.43}},
    {"GPU_Proj_Crypto_Part.zip", mib(18.1), 1, {5.06, 390 * ms, 13.0}, {5.03, 374 * ms, 13.4}},
    {"primeV7.in", mib(78.9), 1, {27.3, 2.47, 11.1}, {28.2, 2.57, 11.0}},
}};

// Figure 10.
inline constexpr std::array<Published003Row, 6> published_003_rsa = {{
    {"README.txt", kib(2.71), 1, {780 * ms, 761 * ms, 1.02}, {3.83, 1.49, 2.57}},
    {"resume.pdf", kib(96.1), 1, {26.5, 5.15, 5.15}, {2.17 * minute, 11.2, 11.6}},
    {"AES", kib(592), 1, {2.70 * minute, 31.3, 5.17}, {13.2 * minute, 1.13 * minute, 11.7}},
    {"stillife.exr",
     mib(3.85),
     1,
     {17.5 * minute, 3.32 * minute, 5.26},
     {1.46 * hour, 7.41 * minute, 11.8}},
    {"GPU_Proj_Crypto_Part.zip",
     mib(18.1),
     1,
     {1.34 * hour, 15.5 * minute, 5.18},
     {6.85 * hour, 34.3 * minute, 12.0}},
    {"primeV7.in", mib(78.9), 1, {6.05 * hour, 1.12 * hour, 5.38}, {1.48 * day, 2.49 * hour, 14.3}},
}};

// Figure 11: one pair of 1,024 bits.
inline constexpr Published003Direction published_003_keys = {40.26, 19.51 * minute, 0.0344};

// Figures 12 and 13.
inline constexpr std::array<Published003Row, 5> published_003_rle = {{
    {"test1.txt", kib(0.23), 1, {0.0, 5.0 * ms, {}}, {0.0, 4.0 * ms, {}}},
    {"test2.txt", kib(9.07), 1, {1.0 * ms, 8.0 * ms, 0.125}, {0.0, 1.0 * ms, {}}},
    {"test3.txt", kib(182), 1, {3.0 * ms, 21.0 * ms, 0.143}, {1.0 * ms, 9.0 * ms, 0.11}},
    {"test4.txt", kib(318), 1, {7.0 * ms, 26.0 * ms, 0.27}, {1.0 * ms, 1.0 * ms, 1.0}},
    {"test5.txt", kib(732), 1, {17.0 * ms, 55.0 * ms, 0.31}, {2.0 * ms, 2.0 * ms, 1.0}},
}};

// Figure 14. The report measures nothing longer: its inputs end at 2,048 bytes.
inline constexpr std::array<Published003Row, 5> published_003_lz77 = {{
    {"test1.txt", kib(0.23), 1, {0.0, 62.0 * ms, {}}, {0.0, 5.0 * ms, {}}},
    {"test2.txt", kib(9.07), 1, {}, {}},
    {"test3.txt", kib(182), 1, {}, {}},
    {"test4.txt", kib(318), 1, {}, {}},
    {"test5.txt", kib(732), 1, {}, {}},
}};

// Figure 15. The report measures the first file and copies of it.
inline constexpr std::array<Published003Row, 9> published_003_huffman = {{
    {"test1.txt", kib(0.23), 1, {1.0 * ms, 10.0 * ms, 0.1}, {0.0, 0.0, {}}},
    {"test1.txt * 2", kib(0.23), 2, {1.0 * ms, 12.0 * ms, 0.08}, {0.0, 1.0 * ms, {}}},
    {"test1.txt * 5", kib(0.23), 5, {1.0 * ms, 15.0 * ms, 0.07}, {1.0 * ms, 1.0 * ms, 1.0}},
    {"test1.txt * 10", kib(0.23), 10, {1.0 * ms, 22.0 * ms, 0.045}, {1.0 * ms, 1.0 * ms, 1.0}},
    {"test1.txt * 20", kib(0.23), 20, {2.0 * ms, 41.0 * ms, 0.05}, {2.0 * ms, 2.0 * ms, 1.0}},
    {"test2.txt", kib(9.07), 1, {}, {}},
    {"test3.txt", kib(182), 1, {}, {}},
    {"test4.txt", kib(318), 1, {}, {}},
    {"test5.txt", kib(732), 1, {}, {}},
}};

// Figure 16.
inline constexpr std::array<Published003Row, 5> published_003_lzw = {{
    {"test1.txt", kib(0.23), 1, {0.0, 4.0 * ms, {}}, {0.0, 1.0 * ms, {}}},
    {"test2.txt", kib(9.07), 1, {6.0 * ms, 1.13, 0.005}, {1.0 * ms, 0.25, 0.004}},
    {"test3.txt", kib(182), 1, {}, {}},
    {"test4.txt", kib(318), 1, {}, {}},
    {"test5.txt", kib(732), 1, {}, {}},
}};

}  // namespace nacre::tools
