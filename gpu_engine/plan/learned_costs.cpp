// SPDX-License-Identifier: Apache-2.0
// Medians, and what sizes take over from their neighbours.
#include "gpu_engine/plan/learned_costs.h"

#include <algorithm>
#include <bit>

namespace nacre::engine {
namespace {

// The first place is for sizes from 2^18 to 2^19 - 1 bytes and for all smaller ones.
constexpr int first_size_bits = 19;

}  // namespace

LearnedCosts::LearnedCosts() {
  for (std::atomic<float>& factor : factors_)
    factor.store(1, std::memory_order_relaxed);
}

// A row of sizes for each class and backend.
CostCell LearnedCosts::cell_of(Side side, WorkClass work, double bytes) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes)));
  const auto size = static_cast<std::size_t>(
      std::clamp(bits - first_size_bits, 0, static_cast<int>(size_count) - 1));
  const std::size_t row = 2 * index_of(work) + index_of(side);
  return static_cast<CostCell>(row * size_count + size);
}

void LearnedCosts::learn(CostCell cell, double measured) {
  kept_[cell][next_[cell]] = static_cast<float>(std::clamp(measured, 1 / factor_max, factor_max));
  next_[cell] = static_cast<std::uint8_t>((next_[cell] + 1) % kept_count);
  const unsigned count = std::min<unsigned>(payload_count(cell) + 1, kept_count);
  counts_[cell].store(static_cast<std::uint8_t>(count), std::memory_order_relaxed);
  publish(cell / size_count);
}

double LearnedCosts::last(CostCell cell) const {
  return payload_count(cell) == 0 ? 1 : kept_[cell][(next_[cell] + kept_count - 1) % kept_count];
}

bool LearnedCosts::got_faster(CostCell cell) const {
  constexpr double share = 0.85;
  return payload_count(cell) >= 2 &&
         last(cell) < share * kept_[cell][(next_[cell] + kept_count - 2) % kept_count];
}

void LearnedCosts::publish(std::size_t row) {
  const std::size_t first = row * size_count;
  const auto known = [&](std::size_t size) {
    return payload_count(static_cast<CostCell>(first + size)) >= 2;
  };
  std::array<float, size_count> median;
  for (std::size_t size = 0; size < size_count; ++size) {
    const std::size_t count = counts_[first + size].load(std::memory_order_relaxed);
    if (count == 0) continue;
    std::array<float, kept_count> sorted = kept_[first + size];
    std::fill(sorted.begin() + static_cast<std::ptrdiff_t>(count), sorted.end(),
              std::numeric_limits<float>::max());
    std::ranges::sort(sorted);
    median[size] = sorted[(count - 1) / 2];
  }
  for (std::size_t size = 0; size < size_count; ++size) {
    float factor = 1;
    for (std::size_t distance = 0; distance < size_count; ++distance) {
      if (distance <= size && known(size - distance)) {
        factor = median[size - distance];
        break;
      }
      if (size + distance < size_count && known(size + distance)) {
        factor = median[size + distance];
        break;
      }
    }
    if (payload_count(static_cast<CostCell>(first + size)) == 1)
      factor = std::min(factor, median[size]);
    factors_[first + size].store(factor, std::memory_order_relaxed);
  }
}

}  // namespace nacre::engine
