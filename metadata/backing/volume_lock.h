// SPDX-License-Identifier: Apache-2.0
// The file "lock" of a volume: one writer, or any number of readers.
//
// flock(2) on the file is the truth; its content only says whom to name, and content that a dead
// holder left is no obstacle. Nacre never removes the file. Somebody else may, so the volume's
// folder is locked as well, where the file system can lock folders. A writer's content is one line
// of JSON:
//   {"host":"h","mode":"rw","mountpoint":"/mnt/x","pid":123,"since":"2026-01-31T23:59:59Z"}
// mountpoint is empty when the volume is open without being mounted (mkfs, fsck). If it is not
// UTF-8, there is a field "mountpoint_base64", too (metadata/text/exact_bytes.h). Readers write
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
  std::string mountpoint = {};  // shown to other processes that want the lock
  std::uint32_t wait_ms = 0;    // how long to wait for a predecessor that is finishing
};

// Whether a writer on this host holds the lock of that volume, and the lock file names this
// process. False also if the file cannot be read.
bool is_writer(const std::string& volume_path, pid_t process);

// The content of a volume's lock file, and whether a writer holds the lock.
struct LockState {
  bool is_held = false;
  std::int64_t pid = 0;  // 0: no process is named; a writer that closes the volume removes its name
  std::string mountpoint;                     // empty: none
  bool names(const std::string& path) const;  // whether path is the mount point
};
// Empty if the file does not exist or cannot be read, or if another host wrote it last.
std::optional<LockState> read_lock(const std::string& volume_path);

// A held lock. It is released when this object and all copies of it that fork() made are destroyed,
// or when their processes end. So a command may take the lock, fork its daemon and exit; the daemon
// then calls announce(). Not thread-safe.
class VolumeLock {
 public:
  // Waits at most 10 s, or wait_ms, for a holder that is just ending. Error busy names the holder.
  // Errors of an exclusive lock: read_only; permission; unsupported if the file system has no
  // locks. For a shared lock, if the file can neither be made nor opened, or cannot be locked, the
  // result is no lock (is_held() is false): Nacre cannot be writing there then.
  static Result<VolumeLock> acquire(const std::string& volume_path, const LockRequest& request);
  VolumeLock(VolumeLock&&) noexcept;
  VolumeLock& operator=(VolumeLock&&) noexcept;
  ~VolumeLock();

  bool is_held() const { return static_cast<bool>(file_); }
  // Writes the content anew with this process's number. Called after fork(). Does nothing for a
  // reader.
  Result<void> announce(const std::string& mountpoint);
  // Keeps the content when the lock is released, because the volume could not be closed cleanly.
  void leave_name() { leaves_name_ = true; }

 private:
  VolumeLock(FileDescriptor file, FileDescriptor folder, std::string path, LockMode mode);
  void release();
  FileDescriptor file_;
  FileDescriptor folder_;  // empty where folders cannot be locked
  std::string path_;
  LockMode mode_;
  bool leaves_name_ = false;
};

}  // namespace nacre::metadata
