// SPDX-License-Identifier: Apache-2.0
// Takes the volume away from a session, and gives it one again, while the mount stays.
//
// The kernel drops its caches while the volume can still take what is dirty in them. When their
// attributes are gone, no program writes to a file without a question, and the gate answers that
// with EIO. A program that had its answer before may be about to write for as long as it gets no
// CPU, so the caches are dropped once more, and again when the gate is closed. What such a program
// writes after that is refused, as on any disk that fails: fsync says so.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/fuse/fuse_session.h"

namespace nacre::fs {

namespace {

// Opens the gate again unless it is told not to.
class DrainingGate {
 public:
  explicit DrainingGate(RequestGate& gate) : gate_(&gate) { gate.drain(); }
  DrainingGate(const DrainingGate&) = delete;
  DrainingGate& operator=(const DrainingGate&) = delete;
  ~DrainingGate() {
    if (gate_ != nullptr) gate_->open();
  }
  void close() {
    RequestGate* const gate = gate_;
    gate_ = nullptr;
    gate->close();
  }

 private:
  RequestGate* gate_;
};

}  // namespace

Result<> FuseSession::suspend(const std::function<Result<>()>& commit) {
  if (!usable_) return fail(ErrorCode::cancelled, "the mount is beginning or ending");
  if (!known_) {
    return fail(ErrorCode::out_of_memory,
                "there was no memory to remember what the kernel has of the volume, so it cannot "
                "be made to forget it");
  }
  if (!transport_->renews_threads()) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} is served over io_uring, whose threads keep what they read until "
                            "they end: to lock it, mount it with -o io_uring=off",
                            mount_point_));
  }
  const int descriptor = fuse_session_fd(session_);
  DrainingGate gate(context_.gate);
  for (int round = 0; round < 2; ++round)
    make_kernel_forget(descriptor, *known_, Forget::everything);
  drop_unused_inodes(descriptor, *known_);
  NACRE_TRY(commit());
  {
    const LockGuard lock(served_mutex_);
    served_->pacer.stop();
    served_->kernel_cache.set(nullptr);
    served_.reset();
  }
  gate.close();
  context_.pending.wait_for_none();
  context_.volume = nullptr;
  context_.pacer = nullptr;
  make_kernel_forget(descriptor, *known_, Forget::everything);
  const auto renewed = [&]() -> Result<> {
    NACRE_TRY(kernel_->renew_thread());
    NACRE_TRY(looker_->renew_thread());
    return transport_->renew_threads();
  }();
  if (!renewed) {
    spdlog::warn("the memory of threads that served {} was not wiped: {}", mount_point_,
                 renewed.error().message);
  }
  return {};
}

void FuseSession::resume(const ServedVolume& served) {
  context_.volume = &served.volume;
  context_.pacer = &served.pacer;
  {
    const LockGuard lock(served_mutex_);
    served_.emplace(served);
    if (usable_) served.kernel_cache.set(kernel_.get());
  }
  context_.kept_forgets.open(context_.gate, [this](std::uint64_t inode, std::uint64_t lookups) {
    forget(context_, inode, lookups);
  });
}

}  // namespace nacre::fs
