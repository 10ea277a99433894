// SPDX-License-Identifier: Apache-2.0
// The thread that erases deleted files piece by piece.
#include "fs/volume/orphan_reaper.h"

#include <utility>

namespace nacre::fs {

OrphanReaper::~OrphanReaper() {
  stop();
}

void OrphanReaper::start() {
  thread_ = std::thread([this] { run(); });
}

void OrphanReaper::stop() {
  std::deque<InodeRef> large;
  {
    LockGuard lock(mutex_);
    stopping_ = true;
    large.swap(large_);
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void OrphanReaper::add(InodeRef inode) {
  LockGuard lock(mutex_);
  waiting_.push_back(std::move(inode));
}

void OrphanReaper::erase_small() {
  while (true) {
    InodeRef inode;
    {
      LockGuard lock(mutex_);
      if (waiting_.empty()) return;
      inode = std::move(waiting_.front());
      waiting_.pop_front();
      ++in_hand_count_;
    }
    const bool done = erase_(inode, piece_row_count);
    LockGuard lock(mutex_);
    --in_hand_count_;
    if (done || stopping_) continue;
    large_.push_back(std::move(inode));
    wake_.notify_one();
  }
}

bool OrphanReaper::is_busy() {
  LockGuard lock(mutex_);
  return in_hand_count_ > 0 || !waiting_.empty() || !large_.empty();
}

void OrphanReaper::run() {
  UniqueLock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this]() NACRE_REQUIRES(mutex_) { return stopping_ || !large_.empty(); });
    if (stopping_) return;
    InodeRef inode = std::move(large_.front());
    large_.pop_front();
    ++in_hand_count_;
    lock.unlock();
    const bool done = erase_(inode, piece_row_count);
    if (done) inode = {};
    lock.lock();
    --in_hand_count_;
    if (!done && !stopping_) large_.push_back(std::move(inode));
  }
}

}  // namespace nacre::fs
