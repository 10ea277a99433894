// SPDX-License-Identifier: Apache-2.0
// Versions that were drawn for records that no row names yet. A checkpoint needs to know the
// version below which a record without a row is dead, and not about to get its row.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// Thread-safe.
class VersionsInHand {
 public:
  // Stands for all versions from some number on, as long as it exists. Any thread may drop it, also
  // after the object that made it is gone.
  using Mark = std::shared_ptr<const void>;

  // Called before versions are drawn from next. The mark is kept until rows name the records, or
  // until it is certain that no row will.
  Mark mark(const std::atomic<std::uint64_t>& next) {
    LockGuard lock(held_->mutex);
    const auto place = held_->lowest.insert(next.load());
    return {held_.get(), [held = held_, place](const void*) {
              LockGuard end(held->mutex);
              held->lowest.erase(place);
            }};
  }
  // No record in hand has a version below this, now or later.
  std::uint64_t lowest(const std::atomic<std::uint64_t>& next) const {
    LockGuard lock(held_->mutex);
    return held_->lowest.empty() ? next.load() : *held_->lowest.begin();
  }

 private:
  struct Held {
    Mutex mutex;
    std::multiset<std::uint64_t> lowest NACRE_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Held> held_ = std::make_shared<Held>();
};

}  // namespace nacre::fs
