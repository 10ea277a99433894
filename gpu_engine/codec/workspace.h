// SPDX-License-Identifier: Apache-2.0
// Memory that a codec keeps for each thread: large tables that need no initial value, and plain
// bytes in progress. Core dumps leave it out, and it is wiped when the thread ends.
#pragma once

#include <new>
#include <utility>

#include "gpu_engine/base/arena.h"

namespace nacre::engine {

// Owns one T in pages of its own. T is default-constructible; what its constructor does not set is
// zero at first, and later what the last use left. Not thread-safe. Throws std::bad_alloc.
template <typename T>
class ThreadWorkspace {
 public:
  ThreadWorkspace() {
    auto made = allocate_host_arena(sizeof(T));
    if (!made) throw std::bad_alloc();
    pages_ = std::move(*made);
    value_ = new (pages_.data()) T;
  }
  ~ThreadWorkspace() { value_->~T(); }
  ThreadWorkspace(const ThreadWorkspace&) = delete;
  ThreadWorkspace& operator=(const ThreadWorkspace&) = delete;

  T& value() { return *value_; }

 private:
  Arena pages_;
  T* value_;
};

// The calling thread's own T, made at the thread's first call. May throw std::bad_alloc; the next
// call then tries again. Memory that T itself allocates is neither wiped nor left out of dumps.
template <typename T>
T& thread_workspace() {
  static thread_local ThreadWorkspace<T> workspace;
  return workspace.value();
}

}  // namespace nacre::engine
