// SPDX-License-Identifier: Apache-2.0
// Notifications through libfuse, and the thread that may wait for them.
#include "fs/fuse/kernel_notifier.h"

#include <pthread.h>

#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "fs/fuse/fuse_library.h"
#include "gpu_engine/base/wiped_stack.h"

namespace nacre::fs {

KernelNotifier::~KernelNotifier() {
  stop();
}

Result<> KernelNotifier::start() {
  const LockGuard life(life_mutex_);
  return begin_thread();
}

Result<> KernelNotifier::begin_thread() try {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "fuse-notify");
    wipe_stack();  // of what an ended thread left there
    run();
  });
  return {};
} catch (const std::system_error&) {
  return fail(ErrorCode::out_of_memory, "no thread for notifications to the kernel");
}

void KernelNotifier::stop() {
  const LockGuard life(life_mutex_);
  is_stopped_ = true;
  end_thread();
}

Result<> KernelNotifier::renew_thread() {
  const LockGuard life(life_mutex_);
  if (is_stopped_) return {};
  end_thread();
  return begin_thread();
}

void KernelNotifier::end_thread() {
  {
    LockGuard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  LockGuard lock(mutex_);
  stopping_ = false;
}

void KernelNotifier::write_out(metadata::InodeNumber inode) {
  write_out_range(inode, 0, 0);
}

void KernelNotifier::write_out_range(metadata::InodeNumber inode, std::uint64_t offset,
                                     std::uint64_t length) {
  // An error means that the kernel does not know the inode (so it caches nothing of it) or that the
  // connection is gone.
  (void)fuse_lowlevel_notify_inval_inode(session_, inode.value, static_cast<off_t>(offset),
                                         static_cast<off_t>(length));
}

void KernelNotifier::forget_attributes(metadata::InodeNumber inode) {
  // A negative offset leaves the pages alone.
  (void)fuse_lowlevel_notify_inval_inode(session_, inode.value, -1, 0);
}

void KernelNotifier::forget_blocks(metadata::InodeNumber inode) {
  // This hands data to the kernel for its cache. If data lies behind the end of the file, the file
  // grows with it, so its blocks are no longer known. Here the data has no bytes, so the file does
  // not grow.
  fuse_bufvec nothing = {};
  nothing.count = 1;
  nothing.buf[0].fd = -1;
  (void)fuse_lowlevel_notify_store(session_, inode.value, std::numeric_limits<off_t>::max(),
                                   &nothing, static_cast<fuse_buf_copy_flags>(0));
}

void KernelNotifier::forget_name(metadata::InodeNumber directory, std::string_view name) {
  // An error means that the kernel does not know the name, or that the connection is gone.
  const std::string terminated(name);
  (void)fuse_lowlevel_notify_inval_entry(session_, directory.value, terminated.c_str(),
                                         terminated.size());
}

void KernelNotifier::post(std::function<void()> task) {
  RequestGate::Pass pass = gate_.enter_again();
  {
    LockGuard lock(mutex_);
    tasks_.push_back({RequestScope::current(), std::move(pass), std::move(task)});
  }
  wake_.notify_one();
}

void KernelNotifier::run() noexcept {
  UniqueLock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this]() NACRE_REQUIRES(mutex_) { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      const RequestScope scope(task.mark);
      task.run();
    }
    lock.lock();
  }
}

}  // namespace nacre::fs
