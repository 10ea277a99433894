// SPDX-License-Identifier: Apache-2.0
// The times that payloads really took, as factors of the cost model's times: one factor for each
// backend, class and size. They last as long as the engine.
//
// A factor is the median of the last nine measurements (the lower middle one of an even number), so
// up to four disturbed ones among nine do little harm. A factor above 1 is used only after two
// measurements, because the first payload of a kind also pays for new memory and for loading code.
// A size without measurements has the factor of the nearest size of its class and backend.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gpu_engine/plan/work_class.h"

namespace nacre::engine {

enum class Side : std::uint8_t { cpu, cuda };
constexpr std::size_t index_of(Side side) {
  return static_cast<std::size_t>(side);
}

// The place of one factor, less than LearnedCosts::cell_count; no_cost_cell where nothing is to be
// learned.
using CostCell = std::uint16_t;
inline constexpr CostCell no_cost_cell = std::numeric_limits<CostCell>::max();

// Any thread may call factor() and payload_count() at any time. Only one thread at a time may call
// learn(), last() and got_faster().
class LearnedCosts {
 public:
  static constexpr double factor_max = 4;  // and the least is 1 / factor_max
  // One place for each power of two, from less than 512 KiB to 512 MiB and more.
  static constexpr std::size_t size_count = 12;
  static constexpr std::size_t cell_count = 2 * work_class_count * size_count;

  LearnedCosts();

  // bytes: as for cuda_ns(), the devices' bytes times their load.
  static CostCell cell_of(Side side, WorkClass work, double bytes);
  static std::size_t class_index(CostCell cell) { return cell / (2 * size_count); }

  // What the model's cost is multiplied by; 1 where nothing is known.
  double factor(CostCell cell) const { return factors_[cell].load(std::memory_order_relaxed); }
  // How many measurements the factor comes from, nine at most.
  unsigned payload_count(CostCell cell) const {
    return counts_[cell].load(std::memory_order_relaxed);
  }
  // measured: a payload's time divided by the model's.
  void learn(CostCell cell, double measured);
  // The last measurement; 1 where there was none.
  double last(CostCell cell) const;
  // Whether the last measurement is notably less than the one before.
  bool got_faster(CostCell cell) const;

 private:
  static constexpr std::size_t kept_count = 9;

  void publish(std::size_t row);

  std::array<std::atomic<float>, cell_count> factors_;
  std::array<std::atomic<std::uint8_t>, cell_count> counts_ = {};
  std::array<std::array<float, kept_count>, cell_count> kept_ = {};
  std::array<std::uint8_t, cell_count> next_ = {};
};

}  // namespace nacre::engine
