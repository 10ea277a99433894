// SPDX-License-Identifier: Apache-2.0
// Memory that an encoder keeps for the thread: large tables that need no start value.
#pragma once

#include <memory>

namespace nacre::engine {

// The thread's own T, made when it is first asked for. May throw std::bad_alloc.
template <typename T>
T& thread_workspace() {
  static thread_local const std::unique_ptr<T> workspace = std::make_unique_for_overwrite<T>();
  return *workspace;
}

}  // namespace nacre::engine
