// SPDX-License-Identifier: Apache-2.0
// The free space of a disk, without asking the disk each time: in a network directory each question
// is a round trip.
//
// An answer is valid for a while. Bytes that the volume itself appends in the meantime are
// subtracted from it. So the result is at most what would be free if nothing were freed and no
// other program wrote.
//
// Thread-safe. The thread that finds the answer too old asks, and the others go on with the old
// one. For the first answer all threads wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

namespace nacre::fs {

class FreeSpace {
 public:
  // Returns the disk's free bytes. Called on any thread, one at a time. Must not throw.
  using Ask = std::function<std::uint64_t()>;
  FreeSpace(Ask ask, std::chrono::milliseconds counts_for)
      : ask_(std::move(ask)), counts_for_(counts_for) {}

  // appended_bytes is the total number of bytes that the volume has appended since some moment.
  std::uint64_t bytes(std::uint64_t appended_bytes);

 private:
  using Clock = std::chrono::steady_clock;

  const Ask ask_;
  const std::chrono::milliseconds counts_for_;

  std::mutex mutex_;  // guards what follows
  bool is_known_ = false;
  bool is_being_asked_ = false;  // the disk is being asked for a new answer
  Clock::time_point asked_at_;
  std::uint64_t answer_bytes_ = 0;
  std::uint64_t appended_before_ = 0;  // appended_bytes when the disk was asked
};

}  // namespace nacre::fs
