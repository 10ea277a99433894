// SPDX-License-Identifier: Apache-2.0
// Closes connections that wait too long for the head of a request. libmicrohttpd closes a
// connection that is silent; one that gets a byte now and then is never silent, and would take one
// of the places for connections for ever.
#pragma once

#include <chrono>
#include <list>
#include <thread>

#include "gpu_engine/base/mutex.h"

namespace nacre::tools::web {

// Thread-safe. A thread of its own shuts the sockets down. All connections have left before the
// object is destroyed.
class HeadLimit {
  struct Entry;

 public:
  using Place = std::list<Entry>::iterator;

  // A head must be complete this long after the connection began or its last request was over.
  explicit HeadLimit(std::chrono::seconds limit);
  ~HeadLimit();
  HeadLimit(const HeadLimit&) = delete;
  HeadLimit& operator=(const HeadLimit&) = delete;

  // A new connection, which waits for its first head. socket stays open until leave().
  Place enter(int socket);
  // The head of a request is complete: the connection has all the time it needs from now on.
  void has_head(Place place);
  // The request is over, and the connection waits for the head of the next one.
  void waits(Place place);
  // The connection ends. place is not valid afterwards.
  void leave(Place place);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    int socket = -1;
    bool is_waiting = false;
    Clock::time_point end;
  };

  void wait(Place place) NACRE_REQUIRES(mutex_);
  void watch();

  const std::chrono::seconds limit_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::list<Entry> waiting_ NACRE_GUARDED_BY(mutex_);  // the earliest end first
  std::list<Entry> other_ NACRE_GUARDED_BY(mutex_);
  bool is_stopping_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::tools::web
