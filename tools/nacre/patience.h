// SPDX-License-Identifier: Apache-2.0
// Says what a command waits for, once that takes long, and again from time to time.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace nacre::tools {

// While it exists: a note on standard error after five seconds and every minute.
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
  std::mutex mutex_;  // guards over_
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace nacre::tools
