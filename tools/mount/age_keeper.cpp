// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/age_keeper.h"

#include <utility>

namespace nacre::tools {

AgeKeeper::AgeKeeper(std::chrono::milliseconds interval, std::function<metadata::VolumeAge()> age,
                     std::function<void(const metadata::VolumeAge&)> note)
    : interval_(interval),
      age_(std::move(age)),
      note_(std::move(note)),
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
  metadata::VolumeAge noted = age_();
  UniqueLock lock(mutex_);
  while (!wake_.wait_for(lock, interval_, [&]() NACRE_REQUIRES(mutex_) { return stopping_; })) {
    lock.unlock();
    if (const auto age = age_(); age != noted) {
      note_(age);
      noted = age;
    }
    lock.lock();
  }
}

}  // namespace nacre::tools
