// SPDX-License-Identifier: Apache-2.0
// Delta debugging: finds a small part of a history that still fails.
#pragma once

#include <cstdint>
#include <functional>

#include "tests/mount/exerciser/operation.h"

namespace nacre::tests {

struct ShrinkBounds {
  std::uint64_t replay_count_max = 400;
  std::uint64_t operation_count_max = 500'000;  // of all replays together, and eight whole ones
};

struct Shrunk {
  History history;
  std::uint64_t replay_count = 0;
  bool fails = false;  // no replay of the whole history failed: it is returned as it was
};

// Shrinks the history. fails replays a history on new files. First the shortest failing end of the
// history is taken. Then operations that the failure does not need are left out, and the others are
// simplified, until the bounds are reached.
Shrunk shrink(History history, const std::function<bool(const History&)>& fails,
              const ShrinkBounds& bounds);

}  // namespace nacre::tests
