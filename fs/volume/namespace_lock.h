// SPDX-License-Identifier: Apache-2.0
// A shared mutex that prefers writers: once a writer waits, new readers wait behind it. With
// std::shared_mutex a stream of lookups could make a create wait for ever. Not recursive: a thread
// that holds the lock for reading must not take it again, or it may wait for a writer that waits
// for this thread. Use it through LockGuard and SharedLock of gpu_engine/base/mutex.h.
#pragma once

#include <pthread.h>

#include "gpu_engine/base/thread_annotations.h"

namespace nacre::fs {

class NACRE_CAPABILITY("namespace lock") NamespaceLock {
 public:
  NamespaceLock() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~NamespaceLock() { pthread_rwlock_destroy(&lock_); }
  NamespaceLock(const NamespaceLock&) = delete;
  NamespaceLock& operator=(const NamespaceLock&) = delete;

  void lock() NACRE_ACQUIRE() { pthread_rwlock_wrlock(&lock_); }
  void unlock() NACRE_RELEASE() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() NACRE_ACQUIRE_SHARED() { pthread_rwlock_rdlock(&lock_); }
  void unlock_shared() NACRE_RELEASE_SHARED() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace nacre::fs
