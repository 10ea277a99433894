// SPDX-License-Identifier: Apache-2.0
// If a command waits for long, says what it waits for, and again from time to time.
#pragma once

#include <string>
#include <thread>

#include "gpu_engine/base/mutex.h"

namespace nacre::tools {

// While it exists, it prints a note on standard error after five seconds and then every minute.
class Patience {
 public:
  // what: "waiting for … (…)"; the seconds are added.
  explicit Patience(std::string what);
  ~Patience();
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  void run();
  const std::string what_;
  Mutex mutex_;
  ConditionVariable wake_;
  bool over_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::tools
