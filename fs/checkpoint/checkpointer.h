// SPDX-License-Identifier: Apache-2.0
// When checkpoints are written (docs/FORMAT.md, "Checkpoint"): in the background at an interval
// when something changed, when the volume is closed, and when a user or an operation asks for one.
//
// The rows are read from a view of what one commit made durable, so no operation waits for a
// checkpoint. It costs time of the processor and of the disk only, and the background thread rests
// for as long as it works. The records are on the medium before the row that names them is
// committed. The same commit drops the checkpoint before the last one.
//
// If the disk is too full, or if the checkpoint would take more than its share of the disk, none is
// written. The log then says so, the last checkpoint stays, and no other operation fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "fs/checkpoint/checkpoint_records.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

struct CheckpointOptions {
  std::uint32_t interval_ms = 600'000;  // 0: none is written, neither when the volume is closed
  // A checkpoint that would take more than 1/disk_share of the disk is given up. At most three are
  // on the disk at any time.
  std::uint64_t disk_share = 32;
};

enum class CheckpointKeep : std::uint8_t {
  the_one_before,  // keeps the new checkpoint and the one before it
  only_this,       // keeps the new checkpoint only
};

struct CheckpointReport {
  metadata::CheckpointNumber number;
  std::uint64_t row_count = 0;
  std::uint64_t plain_bytes = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t took_ms = 0;
};

struct CheckpointStats {
  std::uint64_t written_count = 0;  // since the mount
  CheckpointReport last;            // the last one that this mount wrote
  std::string state;                // "idle", "working", "off", or why the last attempt failed
};

// Thread-safe.
class Checkpointer {
 public:
  // Everything passed by reference outlives it.
  Checkpointer(metadata::BackingDirectory& directory, metadata::Database& database,
               SegmentStore& store, Committer& committer, Ballast& ballast,
               const CheckpointOptions& options);
  ~Checkpointer();  // stop()

  // Finds out whether the last checkpoint still describes the tables, and starts the background
  // thread. Called once.
  Result<> start() NACRE_EXCLUDES(mutex_);
  // Ends the background thread and every write() that is under way, at once.
  void stop() NACRE_EXCLUDES(mutex_, run_mutex_);
  // Tells that rows which belong in a checkpoint are being staged. May be called under any lock.
  void note_change() { changed_.store(true, std::memory_order_relaxed); }

  // Writes a checkpoint now, at full speed and whatever the interval is, and commits it. Errors:
  // cancelled by stop(); no_space; too_big if it passes its share of the disk; those of a commit.
  Result<CheckpointReport> write(CheckpointKeep keep) NACRE_EXCLUDES(run_mutex_);
  // Writes the checkpoint of a volume that is closing, if something changed since the last one. The
  // caller has called stop(), no other thread changes the volume, and the committer still runs. An
  // error is logged only.
  void write_last() NACRE_EXCLUDES(run_mutex_, mutex_);

  CheckpointStats stats() const NACRE_EXCLUDES(mutex_);

 private:
  struct Moment;
  struct Kept;

  void run() NACRE_EXCLUDES(mutex_, run_mutex_);
  Result<CheckpointReport> write_one(CheckpointKeep keep, bool is_paced, bool is_last)
      NACRE_EXCLUDES(mutex_);
  // Commits, and takes a view of what is durable afterwards. If only_if_changed is set and nothing
  // changed, the result has no view.
  Result<Moment> take_view(bool only_if_changed);
  Result<> install(const CheckpointRecords& made, CheckpointKeep keep, bool is_last);
  Result<> mark_closed();
  Result<std::vector<Kept>> kept() const;  // oldest first
  void release(const Kept& old);
  Result<> admit(std::uint64_t written_bytes) const;
  Result<> pause_as_long_as(std::chrono::steady_clock::duration worked) NACRE_EXCLUDES(mutex_);
  void note_failure(const Error& error) NACRE_EXCLUDES(mutex_);
  std::uint64_t session() const;

  metadata::BackingDirectory& directory_;
  metadata::Database& database_;
  SegmentStore& store_;
  Committer& committer_;
  Ballast& ballast_;
  const CheckpointOptions options_;
  std::atomic<bool> changed_{true};
  bool is_started_ = false;

  Mutex run_mutex_;  // one at a time writes

  mutable Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  CheckpointStats stats_ NACRE_GUARDED_BY(mutex_);
  std::string last_failure_ NACRE_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace nacre::fs
