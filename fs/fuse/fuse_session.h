// SPDX-License-Identifier: Apache-2.0
// A mounted volume: mounts it, serves the kernel's requests from it, and unmounts it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/fuse/connection_watcher.h"
#include "fs/fuse/dispatcher.h"
#include "fs/fuse/measured_transport.h"
#include "fs/fuse/mount_point.h"
#include "fs/fuse/operations.h"
#include "fs/fuse/served_volume.h"
#include "fs/fuse/transport.h"
#include "fs/fuse/uring_plan.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class UringSystem;

struct FuseOptions {
  bool allow_other = false;
  bool read_only = false;
  bool nonempty = false;  // the mount point may hold files
  bool no_xattr = false;  // no extended attributes, no ACLs: saves requests
  // Nothing is opened by handle: no NFS export. But overlayfs can then have lower and upper
  // directories in one mount (KERNEL.md).
  bool no_handles = false;
  bool sync_names = false;       // changes of names are durable before they are answered
  std::string fsname = "nacre";  // the volume's name in the mount table
  unsigned thread_count = 0;     // that read /dev/fuse; 0: default_thread_count()
  UringMode uring = UringMode::automatic;
  unsigned read_ahead_kib = 1024;  // the kernel's; only root can raise it above 128
  OwnerView owners = {};           // the owner that files are shown to have
  // The mount is unmounted if no request came for this long and no file is open. 0: never. Not done
  // while ServedVolume::is_needed.
  std::uint32_t idle_ms = 0;
  std::uint32_t exit_grace_ms = 5000;         // how long request_exit() waits for open files
  bool watch = false;                         // a watcher ends the connection if this process dies
  std::vector<std::string> mount_options;     // for the kernel, e.g. "nosuid"
  std::shared_ptr<UringSystem> uring_system;  // for tests; null: the real one
};

class FuseSession {
 public:
  // Mounts. No thread is started yet: requests wait for run(). Errors: those of check_mount_point
  // and check_fuse; io with the reason that libfuse gave.
  static Result<std::unique_ptr<FuseSession>> create(const ServedVolume& served,
                                                     const std::string& mount_point,
                                                     const FuseOptions& options);
  // Unmounts what is still mounted. Not called during run().
  ~FuseSession();

  // Serves until the file system is unmounted or request_exit() has ended it. All replies are sent
  // when it returns. ready is called once, when the mount is usable. run() is called at most once.
  Result<> run(const std::function<void()>& ready = {});

  // Makes run() return: writes back the kernel's dirty pages and unmounts. If files stay open
  // longer than exit_grace_ms, takes the mount away from their users. May be called from a signal
  // handler and from any thread.
  void request_exit() noexcept;

  // Takes the volume away from the kernel's requests, which are answered with EIO from then on. The
  // kernel hands over what it holds, and drops what it has of the volume. Then commit is called,
  // which makes everything durable. When this returns, nothing here uses the volume, and nothing of
  // it is in the session's memory but the numbers of inodes. After an error, or an exception of
  // commit, all is as before. Errors: cancelled if the mount has not begun, or ends; those of
  // commit. Not called twice in a row.
  Result<> suspend(const std::function<Result<>()>& commit) NACRE_EXCLUDES(served_mutex_);
  // After suspend(): requests are answered from this volume. It must hold what the other one held
  // when it was closed, with the inodes that the kernel knew of it (KernelKnowledge). The
  // is_needed of the first volume goes on to count.
  void resume(const ServedVolume& served) NACRE_EXCLUDES(served_mutex_);

  // "major:minor" of the mount, as in /proc/self/mountinfo.
  const std::string& device() const { return device_; }
  // Absolute, without symbolic links.
  const std::string& mount_point() const { return mount_point_; }
  OpcodeCounts opcode_counts() const { return dispatcher_->counts(); }
  // Counts of what was answered so far. Called on any thread.
  RequestStats request_stats() const;
  // Whether the volume has all writes that the kernel has sent. True if the kernel says that no
  // request waits, or if every WRITE that this process has read is answered. Called on any thread.
  bool has_all_writes() const;
  // Returns an error if, since the last call, the volume refused bytes that the kernel had taken
  // from programs. Called on any thread.
  Result<> take_refusal();
  // The way by which requests come: "/dev/fuse" or "io_uring". Called on any thread.
  std::string transport_name() const { return transport_->name(); }

 private:
  FuseSession(const ServedVolume& served, const FuseOptions& options);
  Result<> mount(const std::string& mount_point);
  void make_transport(unsigned thread_count);
  Result<> find_device();
  void start_watcher();
  bool is_mounted() const;
  void raise_read_ahead() const;
  void set_dirty_share();
  // Waits for a change of the flags below, for at most timeout_ms (-1: without a limit).
  void wait_for_event(int timeout_ms);
  void signal_event() noexcept;
  // The time until the next check of whether the mount is in use. -1: there is none.
  int idle_wait_ms() const;
  // Unmounts if no program has used the mount for long enough.
  void leave_when_idle();
  void leave();
  void stop_pacing() NACRE_EXCLUDES(served_mutex_);
  void write_back() const;
  void wait_until_quiet();
  void disconnect();
  Connection connection() const;

  const FuseOptions options_;
  const MountEnvironment environment_ = MountEnvironment::current();
  const std::function<bool()> is_needed_;
  Mutex served_mutex_;
  std::optional<ServedVolume> served_ NACRE_GUARDED_BY(served_mutex_);  // none: suspended
  std::string mount_point_;
  std::string device_;
  Context context_;
  fuse_session* session_ = nullptr;
  std::unique_ptr<KernelNotifier> kernel_;
  std::unique_ptr<KernelNotifier> looker_;
  RequestMetrics metrics_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<MeasuredTransport> measured_transport_;
  std::unique_ptr<Dispatcher> dispatcher_;
  bool may_have_rings_ = false;
  std::unique_ptr<KnownInodes> known_;
  std::unique_ptr<ConnectionWatcher> watcher_;

  int event_fd_ = -1;
  // Used by run() only. The last time at which the mount was seen in use, and the number of
  // requests that had come by then.
  std::uint64_t busy_count_ = 0;
  std::chrono::steady_clock::time_point busy_until_{};
  std::atomic<bool> initialised_{false};
  std::atomic<bool> usable_{false};  // from when run() has called ready until it ends
  std::atomic<bool> exit_requested_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace nacre::fs
