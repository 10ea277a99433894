// SPDX-License-Identifier: Apache-2.0
// The kernel's page cache above a mounted volume, as far as the volume makes calls to it.
#pragma once

#include <atomic>

#include "gpu_engine/base/mutex.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

// The calls that the volume makes to the cache of its files above it (the kernel's). While there is
// such a cache, the kernel also keeps the times of changed content: it shows its own times, rounded
// to its clock's tick, and sends them if they differ from what it sent last. It would not notice
// times that are set here.
class KernelCache {
 public:
  virtual ~KernelCache() = default;
  // Makes the kernel hand over the file's dirty pages, and returns when it has. Called on threads
  // that serve no requests.
  virtual void write_out(metadata::InodeNumber inode) = 0;
};

// The place at which the FUSE session registers its cache and the volume finds it. Thread-safe.
class KernelCacheLink {
 public:
  // Must be set to null again before the cache is destroyed; that waits for a write_out() under
  // way.
  void set(KernelCache* kernel_cache) {
    const LockGuard lock(mutex_);
    kernel_cache_ = kernel_cache;
    is_set_ = kernel_cache != nullptr;
  }
  bool is_set() const { return is_set_; }
  // Calls KernelCache::write_out() if there is a cache.
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
