// SPDX-License-Identifier: Apache-2.0
// The daemon's own notifications to the kernel: to hand over dirty pages, or to forget attributes.
//
// When the kernel hands over pages, the call waits for WRITE requests that other threads must
// serve. So it is made on threads that serve no request: the volume's own (write_out) or the thread
// of this class (post).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <thread>

#include "fs/control/request_metrics.h"
#include "fs/fuse/request_gate.h"
#include "fs/volume/kernel_cache.h"
#include "gpu_engine/base/mutex.h"

struct fuse_session;

namespace nacre::fs {

class KernelNotifier final : public KernelCache {
 public:
  // Both outlive it.
  KernelNotifier(fuse_session* session, RequestGate& gate) : session_(session), gate_(gate) {}
  ~KernelNotifier() override;

  Result<> start() NACRE_EXCLUDES(life_mutex_);
  // Runs the posted tasks, then ends the thread. No task may be posted any more.
  void stop() NACRE_EXCLUDES(life_mutex_);
  // Puts a new thread in the place of this object's, so that nothing is left on its stack. No task
  // may be posted meanwhile. Does nothing after stop(). Error: out_of_memory; then no task runs.
  Result<> renew_thread() NACRE_EXCLUDES(life_mutex_);

  // Writes out the whole file. Not called on a thread that serves requests.
  void write_out(metadata::InodeNumber inode) override;
  // Writes out the pages that touch [offset, offset + length), and removes them from the kernel's
  // cache. A length of 0 reaches to the end of the file. Not called on a thread that serves
  // requests.
  void write_out_range(metadata::InodeNumber inode, std::uint64_t offset, std::uint64_t length);
  // Makes the kernel ask for the inode's attributes when it next needs them. Called on any thread.
  void forget_attributes(metadata::InodeNumber inode);

  // Makes the kernel ask for the number of blocks of the file, and keep all else that it knows.
  // Called on any thread. Works with kernels whose protocol is at least minor_with_blocks_alone.
  void forget_blocks(metadata::InodeNumber inode);

  // Makes the kernel forget the name, and also the inode once no program uses the file. Not called
  // on a thread that serves requests, since the kernel waits for operations in that directory.
  void forget_name(metadata::InodeNumber directory, std::string_view name);

  // Runs task on this object's thread, after those posted before. task must not throw. It may
  // answer the request that the calling thread handles. The caller holds a pass of the gate, and so
  // does the task.
  void post(std::function<void()> task);

 private:
  void run() noexcept;
  Result<> begin_thread() NACRE_REQUIRES(life_mutex_);
  void end_thread() NACRE_REQUIRES(life_mutex_) NACRE_EXCLUDES(mutex_);

  fuse_session* const session_;
  RequestGate& gate_;
  Mutex mutex_;
  ConditionVariable wake_;
  struct Task {
    RequestMark mark;  // of the request that it answers, if any
    RequestGate::Pass pass;
    std::function<void()> run;
  };
  // Bounded by the requests that the kernel has under way, and its files with refused pages.
  std::deque<Task> tasks_ NACRE_GUARDED_BY(mutex_);
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  Mutex life_mutex_;
  bool is_stopped_ NACRE_GUARDED_BY(life_mutex_) = false;
  std::thread thread_ NACRE_GUARDED_BY(life_mutex_);
};

}  // namespace nacre::fs
