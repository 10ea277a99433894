// SPDX-License-Identifier: Apache-2.0
// The cache above a volume: the kernel's, of a volume that is mounted.
#pragma once

#include <atomic>

#include "gpu_engine/base/mutex.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

// What the volume needs from whoever caches its files above it (the kernel). While there is one, it
// also keeps the times of changed content: it shows its own, rounded to its clock's tick, and sends
// them when they differ from what it sent last, so times set here would stay behind its back.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // Makes the kernel hand over the file's dirty pages; returns when it has. Called on threads that
  // serve no requests.
  virtual void write_out(metadata::InodeNumber inode) = 0;
};

// Where whoever serves the kernel puts its cache, and the volume finds it. Thread-safe.
class KernelCacheLink {
 public:
  // Null again before it goes: waits for a write_out() that is under way.
  void set(KernelCache* kernel_cache) {
    const LockGuard lock(mutex_);
    kernel_cache_ = kernel_cache;
    is_set_ = kernel_cache != nullptr;
  }
  bool is_set() const { return is_set_; }
  // KernelCache::write_out(), where there is one.
  void write_out(metadata::InodeNumber inode) {
    const LockGuard lock(mutex_);
    if (kernel_cache_ != nullptr) kernel_cache_->write_out(inode);
  }

 private:
  Mutex mutex_;
  KernelCache* kernel_cache_ NACRE_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> is_set_{false};
};

}  // namespace nacre::fs
