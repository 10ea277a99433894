// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/age_keeper.h"

#include <utility>

namespace nacre::tools {

AgeKeeper::AgeKeeper(std::chrono::milliseconds interval, const metadata::VolumeAge& noted,
                     std::function<metadata::VolumeAge()> age,
                     std::function<bool(const metadata::VolumeAge&)> note)
    : interval_(interval),
      age_(std::move(age)),
      note_(std::move(note)),
      noted_(noted),
      thread_([this] { run(); }) {}

AgeKeeper::~AgeKeeper() {
  {
    LockGuard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void AgeKeeper::run() {
  UniqueLock lock(mutex_);
  do {
    lock.unlock();
    if (const auto age = age_(); age != noted_ && note_(age)) noted_ = age;
    lock.lock();
  } while (!wake_.wait_for(lock, interval_, [&]() NACRE_REQUIRES(mutex_) { return stopping_; }));
}

}  // namespace nacre::tools
