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

// fails replays a history on new files. Of the history, the shortest end that fails is taken; then
// what it does not need is left out, and what is left made simpler, until the bounds are reached.
Shrunk shrink(History history, const std::function<bool(const History&)>& fails,
              const ShrinkBounds& bounds);

}  // namespace nacre::tests
