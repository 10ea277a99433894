// SPDX-License-Identifier: Apache-2.0
// The end of a mount waits for the backing directory to take all data, and drops none. But a
// network disk that never answers must not keep a daemon for ever. So the log says what the daemon
// waits for, and from then on a further signal ends the process as a crash would.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "gpu_engine/base/mutex.h"

namespace nacre::tools {

// Thread-safe. Starts a thread.
class EndWatch {
 public:
  // give_up does not return; it runs on the thread that calls signal().
  EndWatch(std::string volume, std::function<void()> give_up);
  ~EndWatch();  // the mount has ended
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

  // Tells that the end begins. Returns true the first time.
  bool begin();
  // Tells that a signal came while the end was under way.
  void signal();

 private:
  void run();

  const std::string volume_;
  const std::function<void()> give_up_;
  Mutex mutex_;
  ConditionVariable wake_;
  bool begun_ NACRE_GUARDED_BY(mutex_) = false;
  bool noticed_ NACRE_GUARDED_BY(mutex_) = false;  // the log has said what a further signal does
  bool over_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::tools
