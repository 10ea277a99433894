// SPDX-License-Identifier: Apache-2.0
// What the daemon tells the kernel unasked: to hand over dirty pages, to forget attributes.
//
// Making the kernel hand over pages waits for WRITE requests that other threads must serve, so it
// is done on threads that serve no request: the volume's own (write_out) or the one kept here
// (post).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <thread>

#include "fs/control/request_metrics.h"
#include "fs/volume/kernel_cache.h"
#include "gpu_engine/base/mutex.h"

struct fuse_session;

namespace nacre::fs {

class KernelNotifier final : public KernelCache {
 public:
  explicit KernelNotifier(fuse_session* session) : session_(session) {}
  ~KernelNotifier() override;

  Result<> start();
  // Runs what was posted, then ends the thread. Nothing may be posted any more.
  void stop();

  // The whole file. Not on a thread that serves requests.
  void write_out(metadata::InodeNumber inode) override;
  // The pages that touch [offset, offset + length), length 0 = to the end of the file; they leave
  // the kernel's cache. Not on a thread that serves requests.
  void write_out_range(metadata::InodeNumber inode, std::uint64_t offset, std::uint64_t length);
  // The kernel asks for the inode's attributes when it next needs them. Any thread.
  void forget_attributes(metadata::InodeNumber inode);

  // It asks for the blocks that the file takes, and believes all else that it knows. Any thread. Of
  // kernels whose protocol is at least minor_with_blocks_alone.
  void forget_blocks(metadata::InodeNumber inode);

  // The kernel forgets the name, and the inode with it as soon as nobody uses the file. Not on a
  // thread that serves requests: the kernel waits for what is under way in that directory.
  void forget_name(metadata::InodeNumber directory, std::string_view name);

  // Runs task on this object's thread, after those posted before. task must not throw; it may
  // answer the request that the calling thread answers.
  void post(std::function<void()> task);

 private:
  void run() noexcept;

  fuse_session* const session_;
  Mutex mutex_;
  ConditionVariable wake_;
  struct Task {
    RequestMark mark;  // of the request that it answers, if it does
    std::function<void()> run;
  };
  // Bounded by the requests that the kernel has under way, and its files with refused pages.
  std::deque<Task> tasks_ NACRE_GUARDED_BY(mutex_);
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::fs
