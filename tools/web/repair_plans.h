// SPDX-License-Identifier: Apache-2.0
// Remembers which repairs were planned and shown, so that none runs that a person has not seen.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "gpu_engine/base/mutex.h"
#include "tools/web/access.h"

namespace nacre::tools::web {

struct ShownPlan {
  std::string volume;
  bool drop_damaged = false;
  bool operator==(const ShownPlan&) const = default;
};

// Thread-safe. A plan's ID is valid once, for ten minutes.
class RepairPlans {
 public:
  std::string add(ShownPlan plan) {
    const LockGuard lock(mutex_);
    return plans_.add(std::move(plan));
  }
  bool take(std::string_view id, const ShownPlan& plan) {
    const LockGuard lock(mutex_);
    return plans_.take(id) == plan;
  }

 private:
  Mutex mutex_;
  TokenList<ShownPlan> plans_ NACRE_GUARDED_BY(mutex_){16, std::chrono::minutes(10)};
};

}  // namespace nacre::tools::web
