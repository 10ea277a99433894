// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/read_queue.h"

#include <algorithm>
#include <utility>

namespace nacre::fs {

namespace {

constexpr unsigned share_kept_free = 4;

unsigned count_for(unsigned thread_count) {
  const unsigned kept_free = std::max(1u, thread_count / share_kept_free);
  return thread_count > kept_free ? thread_count - kept_free : 1;
}

}  // namespace

ReadQueue::ReadQueue(unsigned thread_count) : count_max_(count_for(thread_count)) {}

bool ReadQueue::begin(ByteView request, const RequestMark& mark) {
  LockGuard lock(mutex_);
  if (count_ < count_max_) {
    ++count_;
    return true;
  }
  waiting_.push_back({Bytes(request.begin(), request.end()), mark});
  return false;
}

std::optional<ReadQueue::Waiting> ReadQueue::next() {
  LockGuard lock(mutex_);
  if (waiting_.empty()) {
    --count_;
    return std::nullopt;
  }
  Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

}  // namespace nacre::fs
