// SPDX-License-Identifier: Apache-2.0
// A shared mutex that prefers writers. With std::shared_mutex a stream of lookups could make a
// create wait for ever. Not recursive, not even for readers.
#pragma once

#include <pthread.h>

namespace nacre::fs {

class NamespaceLock {
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

  void lock() { pthread_rwlock_wrlock(&lock_); }
  void unlock() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() { pthread_rwlock_rdlock(&lock_); }
  void unlock_shared() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace nacre::fs
