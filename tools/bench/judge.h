// SPDX-License-Identifier: Apache-2.0
// Judges outputs that are not known beforehand (streams, records, wrapped secrets) by undoing the
// operation, outside all measuring.
#pragma once

#include <vector>

#include "tools/bench/contender.h"

namespace nacre::tools {

// The operation that undoes another, and what must come out of it.
struct BenchUndo {
  BenchTask task;  // with codec automatic, each stream's own codec is used
  std::vector<std::size_t> output_sizes;
  std::vector<ByteView> expected;
};

// Judges all outputs of a contender whose last run took every message. Error: io if one is wrong,
// or the error of undoing it; both name the message.
Result<> judge_by_undoing(const BenchUndo& undo, const Contender& contender,
                          engine::Engine& engine);
Result<> judge_by_undoing(const BenchUndo& undo, const Contender& contender,
                          const engine::BaselineLibrary& library, unsigned thread_count);

// Error: io if the output is not what it must be.
Result<> compare_output(std::size_t message, ByteView output, ByteView expected);

}  // namespace nacre::tools
