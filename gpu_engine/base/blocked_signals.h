// SPDX-License-Identifier: Apache-2.0
// Signals belong to the program's own threads. Threads that are started while this object lives
// inherit a mask that blocks all signals.
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
