// SPDX-License-Identifier: Apache-2.0
// Two tests. The first counts bytes: for n bytes of noise the squares of the counts of the 256
// values sum up to n + n²/256, give or take n/11. Each hundredth of a bit that entropy coding could
// save a byte adds n²/256 · 0.014 to that sum. The second searches for repeats at any distance: it
// remembers all positions of a few short windows, and then probes positions so close to each other
// that a copy of a window cannot lie between two of them.
#include "gpu_engine/codec/sample.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/sample_plan.h"

namespace nacre::engine {
namespace {

// The sum of squares is updated with each byte that is counted: (n + 1)² = n² + 2n + 1.
bool is_plainly_frequent(ByteView plain, std::size_t stride) {
  std::array<std::uint8_t, 256> counts{};
  std::size_t square_sum = 0;
  for (std::size_t i = 0; i < first_stretches; ++i) {
    const Byte* const stretch = plain.data() + i * first_step * stride;
    for (std::size_t j = 0; j < stretch_size; ++j)
      square_sum += 2 * std::size_t{counts[stretch[j]]++} + 1;
  }
  return square_sum > first_square_sum_max;
}

bool has_frequent_bytes(ByteView plain) {
  const std::size_t stride = plain.size() / stretch_count;
  if (is_plainly_frequent(plain, stride)) return true;
  // Two tables, so that counts of equal bytes in a row do not wait for each other.
  std::array<std::array<std::uint16_t, 256>, 2> counts{};
  for (std::size_t i = 0; i < stretch_count; ++i) {
    const Byte* const stretch = plain.data() + i * stride;
    for (std::size_t j = 0; j < stretch_size; j += 2) {
      ++counts[0][stretch[j]];
      ++counts[1][stretch[j + 1]];
    }
  }
  std::size_t square_sum = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::size_t count = counts[0][byte] + counts[1][byte];
    square_sum += count * count;
  }
  return square_sum > square_sum_max;
}

std::size_t hash(std::uint64_t bytes) {
  return static_cast<std::size_t>((bytes * position_hash_factor) >> (64 - position_table_bits));
}

bool has_repeats(ByteView plain) {
  static_assert(sub_block_size_bytes <= 1u << 16);
  std::array<std::uint16_t, 1u << position_table_bits> positions{};
  const std::size_t stride = plain.size() / window_count;
  for (std::size_t window = 0; window < window_count; ++window) {
    for (std::size_t at = window * stride; at < window * stride + window_size; ++at)
      positions[hash(load_le<std::uint64_t>(plain.data() + at))] = static_cast<std::uint16_t>(at);
  }
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= plain.size(); at += probe_stride) {
    const auto here = load_le<std::uint64_t>(plain.data() + at);
    const std::size_t candidate = positions[hash(here)];
    if (candidate != at && load_le<std::uint64_t>(plain.data() + candidate) == here) return true;
  }
  return false;
}

std::size_t block_size(ByteView plain) {
  return std::min<std::size_t>(plain.size(), sub_block_size_bytes);
}

}  // namespace

bool looks_compressible(ByteView plain) {
  if (plain.size() < sampled_size_min) return !plain.empty();
  for (; plain.size() >= sampled_size_min; plain = plain.subspan(block_size(plain)))
    if (const ByteView block = plain.first(block_size(plain));
        has_frequent_bytes(block) || has_repeats(block))
      return true;
  return false;
}

}  // namespace nacre::engine
