// SPDX-License-Identifier: Apache-2.0
// Tells a witness how far a mounted volume has come, at most once in an interval. It causes no
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
  // noted: what the witness knows already; if the volume is further, the witness is told at once.
  // Both functions are called from the keeper's thread. age must not wait for the volume's disk.
  // note returns false if the witness does not know it, and must be told again.
  AgeKeeper(std::chrono::milliseconds interval, const metadata::VolumeAge& noted,
            std::function<metadata::VolumeAge()> age,
            std::function<bool(const metadata::VolumeAge&)> note);
  AgeKeeper(const AgeKeeper&) = delete;
  AgeKeeper& operator=(const AgeKeeper&) = delete;
  ~AgeKeeper();  // waits for a note that is under way

 private:
  void run();
  const std::chrono::milliseconds interval_;
  const std::function<metadata::VolumeAge()> age_;
  const std::function<bool(const metadata::VolumeAge&)> note_;
  metadata::VolumeAge noted_;
  Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::tools
