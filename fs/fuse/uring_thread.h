// SPDX-License-Identifier: Apache-2.0
// A thread with its own io_uring that serves entries of the kernel's queues. One system call hands
// in a reply and waits for the next request. The thread of a CPU's queue stays on that CPU, where
// the caller is: a request then costs a switch of tasks, not a wake-up of another core.
//
// Such a thread has one entry. So an entry that is free belongs to a thread that is free, and a
// thread that waits for a disk delays no other request. If a reply is left to another thread
// (fsync), that thread puts it into the entry's buffers and wakes the entry's thread by an eventfd
// that the ring reads. Only the thread that made a ring may hand in replies, and the eventfd needs
// no ring on the other side.
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

// The calls of the threads to the system, which tests can make fail. Called on any thread.
class UringSystem {
 public:
  virtual ~UringSystem() = default;
  // Returns 0 or -errno.
  virtual int set_up(unsigned entry_count, io_uring& ring, io_uring_params& parameters);
  // Makes the calling thread stay on this CPU. Returns 0 or errno.
  virtual int stay_on(unsigned cpu);
  // Gets the command by which an entry is entered.
  virtual void before_entering(protocol::UringCommand&) {}
};

struct UringThreadOptions {
  int device_fd = -1;               // /dev/fuse, mounted
  std::optional<unsigned> cpu;      // the CPU to stay on
  std::vector<UringQueue*> queues;  // the queues that it serves; they outlive it
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

  // Sets up. Then the thread waits for enter(). The error says what was refused.
  Result<> start(RequestHandler& handler);
  // After INIT: enters the entries, and serves from then on. It fails if the kernel refuses; the
  // thread has then ended.
  Result<> enter();
  // Makes the thread hand in the replies that it has, and end. Called on any thread, at any time.
  void request_stop() noexcept;
  void join();

  // Notes that the entry has its reply. Called on any thread.
  void commit(UringEntry& entry) noexcept;
  // Makes the kernel go on with the device, if INIT agreed on rings that cannot be set up. Called
  // before every queue has an entry, on any thread.
  static void refuse_rings(int device_fd) noexcept;
  // The UringThread that runs on the calling thread, or null if there is none.
  static UringThread* current() noexcept;
  // See Transport. Called on this thread.
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
  // The first of a list of entries answered by other threads.
  UringEntry* answered_ NACRE_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> wake_up_sent_{false};

  // Used by the thread itself only.
  io_uring ring_ = {};
  bool has_ring_ = false;
  std::uint64_t event_count_ = 0;
  std::vector<UringEntry*> entries_;
  unsigned entry_count_ = 0;       // the kernel has them, or gave them a request
  UringEntry* serving_ = nullptr;  // the entry being served, until it is answered
};

}  // namespace nacre::fs
