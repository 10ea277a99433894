// SPDX-License-Identifier: Apache-2.0
// Remembers which repairs were planned and shown, so that none runs that a person has not seen.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/mutex.h"
#include "tools/web/access.h"

namespace nacre::tools::web {

struct ShownPlan {
  std::string volume;
  bool drop_damaged = false;
  std::string hash;  // of fsck.nacre --expect-plan
};

// Thread-safe. A plan's ID is valid once, for ten minutes.
class RepairPlans {
 public:
  std::string add(ShownPlan plan) {
    const LockGuard lock(mutex_);
    return plans_.add(std::move(plan));
  }
  // The hash of the plan that was shown for this repair; nothing if there was none.
  std::optional<std::string> take(std::string_view id, std::string_view volume, bool drop_damaged) {
    const LockGuard lock(mutex_);
    auto plan = plans_.take(id);
    if (!plan || plan->volume != volume || plan->drop_damaged != drop_damaged) return std::nullopt;
    return std::move(plan->hash);
  }

 private:
  Mutex mutex_;
  TokenList<ShownPlan> plans_ NACRE_GUARDED_BY(mutex_){16, std::chrono::minutes(10)};
};

}  // namespace nacre::tools::web
