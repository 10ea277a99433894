// SPDX-License-Identifier: Apache-2.0
// A thread with an io_uring of its own that serves entries of the kernel's queues: one system call
// hands in a reply and waits for the next request. The thread of a CPU's queue stays on that CPU,
// where the caller is: a request then costs a switch of tasks, not a wake-up of another core.
//
// Such a thread has one entry: an entry that is free belongs to a thread that is, and a thread that
// waits for a disk keeps nobody else waiting. Where a reply is left to another thread (fsync), that
// one puts it into the entry's buffers and wakes the entry's thread by an eventfd that the ring
// reads: only the thread that made a ring may hand in, and the eventfd needs no ring on the other
// side.
#pragma once

#include <liburing.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "fs/fuse/transport.h"
#include "fs/fuse/uring_entry.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// What the threads ask of the system, for tests to refuse. Any thread.
class UringSystem {
 public:
  virtual ~UringSystem() = default;
  // 0 or -errno.
  virtual int set_up(unsigned entry_count, io_uring& ring, io_uring_params& parameters);
  // The calling thread shall stay on this CPU. 0 or errno.
  virtual int stay_on(unsigned cpu);
  // Sees the command by which an entry is entered.
  virtual void before_entering(protocol::UringCommand&) {}
};

struct UringThreadOptions {
  int device_fd = -1;               // /dev/fuse, mounted
  std::optional<unsigned> cpu;      // the one to stay on
  std::vector<UringQueue*> queues;  // that it serves; they outlive it
  unsigned entries_per_queue = 1;
  std::size_t payload_size_bytes = 0;
};

class UringThread {
 public:
  // Table and system outlive the thread.
  UringThread(UringThreadOptions options, UringTable& table, UringSystem& system);
  ~UringThread();
  UringThread(const UringThread&) = delete;
  UringThread& operator=(const UringThread&) = delete;

  // Sets up; the thread waits for enter(). Errors: what was refused.
  Result<> start(RequestHandler& handler);
  // After INIT: enters the entries, and serves from then on. Errors: the kernel refused; the thread
  // has ended then.
  Result<> enter();
  // The thread hands in the replies that it has, and ends. Any thread, at any time.
  void request_stop() noexcept;
  void join();

  // The entry's reply is there. Any thread.
  void commit(UringEntry& entry) noexcept;
  // Makes the kernel go on with the device, where INIT agreed on rings that are not to be. Before
  // every queue has an entry. Any thread.
  static void refuse_rings(int device_fd) noexcept;
  // The UringThread that this thread is; null if it is none.
  static UringThread* current() noexcept;
  // See Transport. On this thread.
  bool may_wait_for_requests() noexcept;

 private:
  enum class Order { none, enter, stop };

  void run(RequestHandler& handler) noexcept;
  Result<> set_up();
  Result<> enter_first_entries();
  bool enter_entry(UringEntry& entry) noexcept;
  void serve(RequestHandler& handler) noexcept;
  void serve_entry(RequestHandler& handler, UringEntry& entry) noexcept;
  void lose_entry(UringEntry& entry, int error) noexcept;
  void hand_in(UringEntry& entry) noexcept;
  void hand_in_answered() noexcept;
  void await_wake_up() noexcept;
  void wake_up() noexcept;
  io_uring_sqe* next_place() noexcept;
  void report(Result<> outcome);
  Result<> wait_for_report();

  const UringThreadOptions options_;
  UringTable& table_;
  UringSystem& system_;
  int event_fd_ = -1;
  std::thread thread_;
  std::atomic<bool> stopping_{false};

  Mutex mutex_;
  ConditionVariable changed_;
  Order order_ NACRE_GUARDED_BY(mutex_) = Order::none;
  std::optional<Result<>> report_ NACRE_GUARDED_BY(mutex_);
  // By other threads: the first of a list.
  UringEntry* answered_ NACRE_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> wake_up_sent_{false};

  // The thread's own.
  io_uring ring_ = {};
  bool has_ring_ = false;
  std::uint64_t event_count_ = 0;
  std::vector<UringEntry*> entries_;
  unsigned entry_count_ = 0;       // that the kernel has or gave a request
  UringEntry* serving_ = nullptr;  // until it is answered
};

}  // namespace nacre::fs
