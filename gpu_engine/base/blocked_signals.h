// SPDX-License-Identifier: Apache-2.0
// Signals belong to the program's own threads. While an object of this class lives, all signals are
// blocked in the thread that made it, and threads that it starts inherit that mask. The same thread
// destroys the object, which brings back the mask from before.
#pragma once

#include <csignal>

namespace nacre {

class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace nacre
