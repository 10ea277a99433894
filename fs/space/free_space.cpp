// SPDX-License-Identifier: Apache-2.0
#include "fs/space/free_space.h"

#include <algorithm>

namespace nacre::fs {

std::uint64_t FreeSpace::bytes(std::uint64_t appended_bytes) {
  UniqueLock lock(mutex_);
  if (is_known_ && (is_being_asked_ || Clock::now() - asked_at_ < counts_for_)) {
    // A caller may have counted before the thread that asked the disk. Nothing is subtracted then.
    const std::uint64_t appended = appended_bytes - std::min(appended_bytes, appended_before_);
    return answer_bytes_ - std::min(answer_bytes_, appended);
  }
  const auto asked_at = Clock::now();
  std::uint64_t answer = 0;
  if (is_known_) {
    is_being_asked_ = true;
    const Unlocked unlocked(lock, mutex_);
    answer = ask_();
  } else {
    answer = ask_();
  }
  is_known_ = true;
  is_being_asked_ = false;
  asked_at_ = asked_at;
  answer_bytes_ = answer;
  appended_before_ = appended_bytes;
  return answer;
}

}  // namespace nacre::fs
