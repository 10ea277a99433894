// SPDX-License-Identifier: Apache-2.0
// A mutex that is had in the order in which it was asked for.
//
// A std::mutex goes to whoever comes by when it is let go of: a thread that takes it again at once,
// as one does that flushes a file batch after batch, keeps those who sleep for it waiting for
// seconds, several such threads for minutes. Here nobody waits longer than for the turns of those
// who came before.
#pragma once

#include <atomic>
#include <cstdint>

namespace nacre::fs {

// Not recursive. For std::unique_lock and the like.
class FairMutex {
 public:
  FairMutex() = default;
  FairMutex(const FairMutex&) = delete;
  FairMutex& operator=(const FairMutex&) = delete;

  void lock() {
    const std::uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint32_t now = turn_.load(std::memory_order_acquire); now != mine;
         now = turn_.load(std::memory_order_acquire)) {
      turn_.wait(now, std::memory_order_acquire);
    }
  }
  // False where somebody has it, or waits for it.
  bool try_lock() {
    std::uint32_t now = turn_.load(std::memory_order_acquire);
    return next_.compare_exchange_strong(now, now + 1, std::memory_order_relaxed);
  }
  void unlock() {
    turn_.fetch_add(1, std::memory_order_release);
    turn_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> next_{0};  // who comes next waits for this turn
  std::atomic<std::uint32_t> turn_{0};  // whose turn it is
};

}  // namespace nacre::fs
