// SPDX-License-Identifier: Apache-2.0
// The standard library's mutexes, locks and condition variable, with annotations for clang's
// thread-safety analysis. They cost as much as the standard ones.
//
// The analysis treats the predicate of a wait as a separate function. So the predicate must say
// which mutex it needs:
//
//   UniqueLock lock(mutex_);
//   wake_.wait(lock, [&]() NACRE_REQUIRES(mutex_) { return is_stopping_; });
//
// The analysis cannot follow a lock that is moved. For such a lock use the standard library's class
// with one of these mutexes.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "gpu_engine/base/thread_annotations.h"

namespace nacre {

class NACRE_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() NACRE_ACQUIRE() { native_.lock(); }
  bool try_lock() NACRE_TRY_ACQUIRE(true) { return native_.try_lock(); }
  void unlock() NACRE_RELEASE() { native_.unlock(); }
  // Tells the analysis that the mutex is held where it knows it by another name. Checks nothing.
  void assert_held() const NACRE_ASSERT_CAPABILITY() {}

 private:
  friend class ConditionVariable;
  std::mutex native_;
};

class NACRE_CAPABILITY("shared mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void lock() NACRE_ACQUIRE() { native_.lock(); }
  void unlock() NACRE_RELEASE() { native_.unlock(); }
  void lock_shared() NACRE_ACQUIRE_SHARED() { native_.lock_shared(); }
  void unlock_shared() NACRE_RELEASE_SHARED() { native_.unlock_shared(); }

 private:
  std::shared_mutex native_;
};

class NACRE_CAPABILITY("timed mutex") TimedMutex {
 public:
  TimedMutex() = default;
  TimedMutex(const TimedMutex&) = delete;
  TimedMutex& operator=(const TimedMutex&) = delete;

  template <typename Rep, typename Period>
  bool try_lock_for(const std::chrono::duration<Rep, Period>& duration) NACRE_TRY_ACQUIRE(true) {
    return native_.try_lock_for(duration);
  }
  void unlock() NACRE_RELEASE() { native_.unlock(); }

 private:
  std::timed_mutex native_;
};

// Holds a mutex while it lives. Lockable is any class that is a capability.
template <typename Lockable>
class NACRE_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lockable& mutex) NACRE_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  // Takes over a mutex that the caller has locked.
  LockGuard(Lockable& mutex, std::adopt_lock_t) NACRE_REQUIRES(mutex) : mutex_(mutex) {}
  ~LockGuard() NACRE_RELEASE() { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lockable& mutex_;
};

// Holds a mutex while it lives, except between unlock() and lock().
template <typename Lockable>
class NACRE_SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(Lockable& mutex) NACRE_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  // Takes over a mutex that the caller has locked.
  UniqueLock(Lockable& mutex, std::adopt_lock_t) NACRE_REQUIRES(mutex) : mutex_(mutex) {}
  ~UniqueLock() NACRE_RELEASE() {
    if (owns_) mutex_.unlock();
  }
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

  void lock() NACRE_ACQUIRE() {
    mutex_.lock();
    owns_ = true;
  }
  void unlock() NACRE_RELEASE() {
    owns_ = false;
    mutex_.unlock();
  }

 private:
  friend class ConditionVariable;
  Lockable& mutex_;
  bool owns_ = true;
};

// Releases a lock's mutex while this object lives. It is for functions with a lock as a parameter,
// which the analysis does not follow.
template <typename Lockable>
class NACRE_SCOPED_CAPABILITY Unlocked {
 public:
  // lock holds mutex.
  Unlocked(UniqueLock<Lockable>& lock, [[maybe_unused]] Lockable& mutex) NACRE_RELEASE(mutex)
      : lock_(lock) {
    lock.unlock();
  }
  ~Unlocked() NACRE_RELEASE() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  UniqueLock<Lockable>& lock_;
};

// Holds a shared mutex for reading while it lives, except between unlock() and lock().
template <typename Lockable>
class NACRE_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(Lockable& mutex) NACRE_ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex.lock_shared();
  }
  ~SharedLock() NACRE_RELEASE() {
    if (owns_) mutex_.unlock_shared();
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

  void lock() NACRE_ACQUIRE_SHARED() {
    mutex_.lock_shared();
    owns_ = true;
  }
  void unlock() NACRE_RELEASE() {
    owns_ = false;
    mutex_.unlock_shared();
  }

 private:
  Lockable& mutex_;
  bool owns_ = true;
};

// std::condition_variable for a UniqueLock<Mutex>. To the analysis the mutex stays held throughout
// a wait. Each predicate is called with the mutex held.
class ConditionVariable {
 public:
  void notify_one() noexcept { native_.notify_one(); }
  void notify_all() noexcept { native_.notify_all(); }

  void wait(UniqueLock<Mutex>& lock) {
    std::unique_lock native(lock.mutex_.native_, std::adopt_lock);
    native_.wait(native);
    native.release();
  }
  template <typename Predicate>
  void wait(UniqueLock<Mutex>& lock, Predicate predicate) NACRE_NO_THREAD_SAFETY_ANALYSIS {
    while (!predicate())
      wait(lock);
  }

  template <typename Clock, typename Duration>
  std::cv_status wait_until(UniqueLock<Mutex>& lock,
                            const std::chrono::time_point<Clock, Duration>& end) {
    std::unique_lock native(lock.mutex_.native_, std::adopt_lock);
    const std::cv_status status = native_.wait_until(native, end);
    native.release();
    return status;
  }
  // Returns the predicate's last value.
  template <typename Clock, typename Duration, typename Predicate>
  bool wait_until(UniqueLock<Mutex>& lock, const std::chrono::time_point<Clock, Duration>& end,
                  Predicate predicate) NACRE_NO_THREAD_SAFETY_ANALYSIS {
    while (!predicate()) {
      if (wait_until(lock, end) == std::cv_status::timeout) return predicate();
    }
    return true;
  }

  template <typename Rep, typename Period>
  std::cv_status wait_for(UniqueLock<Mutex>& lock,
                          const std::chrono::duration<Rep, Period>& duration) {
    std::unique_lock native(lock.mutex_.native_, std::adopt_lock);
    const std::cv_status status = native_.wait_for(native, duration);
    native.release();
    return status;
  }
  template <typename Rep, typename Period, typename Predicate>
  bool wait_for(UniqueLock<Mutex>& lock, const std::chrono::duration<Rep, Period>& duration,
                Predicate predicate) {
    using Clock = std::chrono::steady_clock;
    return wait_until(lock, Clock::now() + std::chrono::ceil<Clock::duration>(duration),
                      std::move(predicate));
  }

 private:
  std::condition_variable native_;
};

}  // namespace nacre
