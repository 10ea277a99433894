// SPDX-License-Identifier: Apache-2.0
// Tells the witness how far a mounted volume has come, at most once in an interval. It causes no
// flush: it tells only what is durable already.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "gpu_engine/base/mutex.h"
#include "metadata/tables/volume_age.h"

namespace nacre::tools {

class AgeKeeper {
 public:
  // Both are called from the keeper's thread; age must not wait for the volume's disk.
  AgeKeeper(std::chrono::milliseconds interval, std::function<metadata::VolumeAge()> age,
            std::function<void(const metadata::VolumeAge&)> note);
  AgeKeeper(const AgeKeeper&) = delete;
  AgeKeeper& operator=(const AgeKeeper&) = delete;
  ~AgeKeeper();

 private:
  void run();
  const std::chrono::milliseconds interval_;
  const std::function<metadata::VolumeAge()> age_;
  const std::function<void(const metadata::VolumeAge&)> note_;
  Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::tools
