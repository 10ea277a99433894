// SPDX-License-Identifier: Apache-2.0
// What a test steers: calls before its reads, writes and lookups, and when syncs are answered.
#include "tests/support/memory_volume.h"

namespace nacre::tests {

void MemoryVolume::before_reads(InodeNumber inode, std::function<Result<>()> call) {
  std::unique_lock lock(tree_);
  if (auto node = find(inode)) (*node)->before_read = std::move(call);
}

void MemoryVolume::before_writes(InodeNumber inode, std::function<Result<>()> call) {
  std::unique_lock lock(tree_);
  if (auto node = find(inode)) (*node)->before_write = std::move(call);
}

void MemoryVolume::before_lookups(std::string name, std::function<void()> call) {
  std::unique_lock lock(tree_);
  slow_name_ = std::move(name);
  before_lookup_ = std::move(call);
}

std::function<void()> MemoryVolume::before_lookup(std::string_view name) {
  std::unique_lock lock(tree_);
  return name == slow_name_ ? before_lookup_ : nullptr;
}

void MemoryVolume::hold_syncs(bool held) {
  {
    std::lock_guard lock(sync_mutex_);
    held_ = held;
  }
  sync_wake_.notify_all();
}

std::size_t MemoryVolume::inode_count() {
  std::shared_lock lock(tree_);
  return nodes_.size();
}

void MemoryVolume::sync_inode(InodeNumber, std::function<void(Result<>)> done) {
  ++sync_count_;
  {
    std::lock_guard lock(sync_mutex_);
    syncs_.push_back(std::move(done));
  }
  sync_wake_.notify_one();
}

void MemoryVolume::run_syncs() {
  std::unique_lock lock(sync_mutex_);
  for (;;) {
    sync_wake_.wait(lock, [this] { return stopping_ || (!syncs_.empty() && !held_); });
    if (syncs_.empty()) return;
    const auto done = std::move(syncs_.front());
    syncs_.pop_front();
    lock.unlock();
    done({});
    lock.lock();
  }
}

}  // namespace nacre::tests
