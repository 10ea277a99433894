// SPDX-License-Identifier: Apache-2.0
#include "tools/web/head_limit.h"

#include <sys/socket.h>

namespace nacre::tools::web {

HeadLimit::HeadLimit(std::chrono::seconds limit) : limit_(limit), thread_([this] { watch(); }) {}

HeadLimit::~HeadLimit() {
  {
    const LockGuard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

HeadLimit::Place HeadLimit::enter(int socket) {
  const LockGuard lock(mutex_);
  const Place place = other_.insert(other_.end(), Entry{.socket = socket, .end = {}});
  wait(place);
  return place;
}

void HeadLimit::has_head(Place place) {
  const LockGuard lock(mutex_);
  if (!place->is_waiting) return;
  place->is_waiting = false;
  other_.splice(other_.end(), waiting_, place);
}

void HeadLimit::waits(Place place) {
  const LockGuard lock(mutex_);
  if (!place->is_waiting) wait(place);
}

void HeadLimit::leave(Place place) {
  const LockGuard lock(mutex_);
  (place->is_waiting ? waiting_ : other_).erase(place);
}

// All connections may wait for the same time, so the last one to begin is the last one to end.
void HeadLimit::wait(Place place) {
  place->is_waiting = true;
  place->end = Clock::now() + limit_;
  waiting_.splice(waiting_.end(), other_, place);
  if (waiting_.size() == 1) changed_.notify_all();
}

void HeadLimit::watch() {
  UniqueLock lock(mutex_);
  while (!is_stopping_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Clock::time_point end = waiting_.front().end;
    if (Clock::now() < end) {
      changed_.wait_until(lock, end);
      continue;
    }
    // The library sees the end of a connection that is shut down, and closes it.
    ::shutdown(waiting_.front().socket, SHUT_RDWR);
    waiting_.front().is_waiting = false;
    other_.splice(other_.end(), waiting_, waiting_.begin());
  }
}

}  // namespace nacre::tools::web
