// SPDX-License-Identifier: Apache-2.0
#include "fs/store/backup_holds.h"

#include <atomic>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gpu_engine/base/check.h"

namespace nacre::fs {

class BackupHolds::Hold final : public BackupHold {
 public:
  Hold(BackupHolds& owner, std::shared_ptr<const void> kept)
      : owner_(owner), kept_(std::move(kept)) {}
  ~Hold() override {
    {
      const LockGuard lock(owner_.mutex_);
      owner_.keeping_.erase(this);
    }
    kept_.reset();
    owner_.leave();
    owner_.freed_();
  }
  bool is_given_up() const override { return given_up_.load(std::memory_order_acquire); }

  // Called with the owner's mutex held.
  std::shared_ptr<const void> give_up() {
    owner_.mutex_.assert_held();
    given_up_.store(true, std::memory_order_release);
    return std::move(kept_);
  }

 private:
  BackupHolds& owner_;
  std::shared_ptr<const void> kept_ NACRE_GUARDED_BY(owner_.mutex_);
  std::atomic<bool> given_up_{false};
};

Result<> BackupHolds::enter() {
  const LockGuard lock(mutex_);
  if (count_ == backup_count_max) {
    return fail(ErrorCode::busy,
                fmt::format("{} backups of this volume are under way already; try again when one "
                            "is done",
                            backup_count_max));
  }
  ++count_;
  return {};
}

void BackupHolds::leave() {
  const LockGuard lock(mutex_);
  NACRE_CHECK(count_ > 0, "a backup ended that never began");
  --count_;
}

std::shared_ptr<const BackupHold> BackupHolds::add(std::shared_ptr<const void> kept) {
  const auto hold = std::make_shared<Hold>(*this, std::move(kept));
  const LockGuard lock(mutex_);
  keeping_.insert(hold.get());
  return hold;
}

unsigned BackupHolds::count() const {
  const LockGuard lock(mutex_);
  return count_;
}

bool BackupHolds::give_up() {
  std::vector<std::shared_ptr<const void>> kept;  // freed when no lock is held any more
  {
    const LockGuard lock(mutex_);
    for (Hold* hold : std::exchange(keeping_, {}))
      kept.push_back(hold->give_up());
  }
  if (kept.empty()) return false;
  kept.clear();
  freed_();
  return true;
}

}  // namespace nacre::fs
