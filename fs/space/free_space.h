// SPDX-License-Identifier: Apache-2.0
// What is free on a disk, without asking it each time: on a network directory a question is a round
// trip.
//
// An answer counts for a while. Meanwhile what the volume itself appends is taken off it, so that
// it is no more than what would be free if nobody gave anything back and nobody else wrote.
//
// Thread-safe. Who finds the answer old asks, the others go on with the old one; for the first
// answer everybody waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace nacre::fs {

class FreeSpace {
 public:
  // Asks the disk: free bytes. On any thread, one at a time; does not throw.
  using Ask = std::function<std::uint64_t()>;
  FreeSpace(Ask ask, std::chrono::milliseconds counts_for)
      : ask_(std::move(ask)), counts_for_(counts_for) {}

  // appended_bytes: what the volume has appended in all since some moment.
  std::uint64_t bytes(std::uint64_t appended_bytes);

 private:
  using Clock = std::chrono::steady_clock;

  const Ask ask_;
  const std::chrono::milliseconds counts_for_;

  std::mutex mutex_;  // guards what follows
  bool is_known_ = false;
  bool is_being_asked_ = false;  // again
  Clock::time_point asked_at_;
  std::uint64_t answer_bytes_ = 0;
  std::uint64_t appended_before_ = 0;  // when the disk was asked
};

}  // namespace nacre::fs
