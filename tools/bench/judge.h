// SPDX-License-Identifier: Apache-2.0
// Judges outputs that are not known beforehand (streams, records, wrapped secrets) by undoing the
// operation, outside all measuring.
#pragma once

#include <vector>

#include "tools/bench/contender.h"

namespace nacre::tools {

// The operation that undoes another, and what must come out of it.
struct BenchUndo {
  BenchTask task;  // of codec automatic: each stream's own is used
  std::vector<std::size_t> output_sizes;
  std::vector<ByteView> expected;
};

// All outputs of a contender whose last run took every message. io where one comes out as something
// else, or the error of what undoes it; both name the message.
Result<> judge_by_undoing(const BenchUndo& undo, const Contender& contender,
                          engine::Engine& engine);
Result<> judge_by_undoing(const BenchUndo& undo, const Contender& contender,
                          const engine::BaselineLibrary& library, unsigned thread_count);

// io unless the output is what it must be.
Result<> compare_output(std::size_t message, ByteView output, ByteView expected);

}  // namespace nacre::tools
