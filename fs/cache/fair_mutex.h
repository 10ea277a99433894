// SPDX-License-Identifier: Apache-2.0
// A mutex that threads get in the order in which they asked for it.
//
// A std::mutex goes to any thread that comes when it is released. So a thread that takes it again
// at once, like one that flushes a file batch after batch, lets sleeping threads wait for seconds,
// and several such threads for minutes. With this mutex a thread waits only for those before it.
#pragma once

#include <atomic>
#include <cstdint>

#include "gpu_engine/base/thread_annotations.h"

namespace nacre::fs {

// Not recursive. It can be used with std::unique_lock and the like.
class NACRE_CAPABILITY("fair mutex") FairMutex {
 public:
  FairMutex() = default;
  FairMutex(const FairMutex&) = delete;
  FairMutex& operator=(const FairMutex&) = delete;

  void lock() NACRE_ACQUIRE() {
    const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t now = turn_.load(std::memory_order_acquire); now != mine;
         now = turn_.load(std::memory_order_acquire)) {
      turn_.wait(now, std::memory_order_acquire);
    }
  }
  // Returns false if another thread has the mutex or waits for it.
  bool try_lock() NACRE_TRY_ACQUIRE(true) {
    std::uint32_t now = turn_.load(std::memory_order_acquire);
    return next_.compare_exchange_strong(now, now + 1, std::memory_order_relaxed);
  }
  void unlock() NACRE_RELEASE() {
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> next_{0};  // the turn of the next thread that comes
  std::atomic<std::uint32_t> turn_{0};  // whose turn it is
};

}  // namespace nacre::fs
