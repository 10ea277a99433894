// SPDX-License-Identifier: Apache-2.0
// The file "lock" of a volume: one writer, or any number of readers.
//
// flock(2) on the file is the truth; its content only says whom to name, and content that a dead
// holder left is no obstacle. The file is never removed, or two writers could hold two of them. A
// writer's content is one line of JSON:
//   {"host":"h","mode":"rw","mountpoint":"/mnt/x","pid":123,"since":"2026-01-31T23:59:59Z"}
// mountpoint is empty when the volume is open without being mounted (mkfs, fsck). Readers write
// nothing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "gpu_engine/base/result.h"
#include "metadata/backing/posix_file.h"

namespace nacre::metadata {

enum class LockMode : std::uint8_t { shared, exclusive };

struct LockRequest {
  LockMode mode = LockMode::exclusive;
  std::string mountpoint = {};  // for messages to others
  std::uint32_t wait_ms = 0;    // how long to wait for a predecessor that is finishing
};

// Whether a writer of this host holds the lock of that volume, and the lock names this process as
// it. False as well where the file cannot be read.
bool is_writer(const std::string& volume_path, pid_t process);

// What the lock file of a volume says, and whether a writer holds it.
struct LockState {
  bool is_held = false;
  std::int64_t pid = 0;    // 0: nobody is named; who closed the volume well takes its name out
  std::string mountpoint;  // empty: none; what is not UTF-8 in it is replaced
  bool names(const std::string& path) const;  // as the mount point
};
// None where the file is not there or cannot be read, or where another host wrote it last.
std::optional<LockState> read_lock(const std::string& volume_path);

// Held until it and every copy of it that fork() made are destroyed or their processes end. So a
// command may take it, fork its daemon and exit: the daemon calls announce(). Not thread-safe.
class VolumeLock {
 public:
  // busy names the holder; one that is just ending, as a killed one does, is waited for (10 s at
  // most, or wait_ms). exclusive: read_only, permission, or unsupported where the file system
  // has no locks. shared: where the file can neither be made nor opened, or not locked, goes on
  // without a lock (is_held() is false): nobody can write there either, or not by way of us.
  static Result<VolumeLock> acquire(const std::string& volume_path, const LockRequest& request);
  VolumeLock(VolumeLock&&) noexcept;
  VolumeLock& operator=(VolumeLock&&) noexcept;
  ~VolumeLock();

  bool is_held() const { return static_cast<bool>(file_); }
  // Writes the content anew in the name of this process: after fork(). No-op for a reader.
  Result<void> announce(const std::string& mountpoint);
  // The volume could not be closed well: the content stays when the lock goes.
  void leave_name() { leaves_name_ = true; }

 private:
  VolumeLock(FileDescriptor file, std::string path, LockMode mode);
  void release();
  FileDescriptor file_;
  std::string path_;
  LockMode mode_;
  bool leaves_name_ = false;
};

}  // namespace nacre::metadata
