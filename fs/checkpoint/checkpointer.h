// SPDX-License-Identifier: Apache-2.0
// When checkpoints are written (docs/FORMAT.md, "Checkpoint"): in the background at an interval
// when something changed, when the volume is closed, and when somebody asks.
//
// The rows are read from a view of what one commit made durable, so nobody waits for it: a writer
// pays for the processor and the disk alone, of which the background leaves half of the time to
// others. The records are on the medium before the row that names them; the same commit drops the
// checkpoint before the last one.
//
// None is written to a disk that is too full for it, or when it would take more than its share of
// the disk: the log says so, the last one stays, and nothing else hears of it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "fs/checkpoint/checkpoint_records.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"

namespace nacre::fs {

struct CheckpointOptions {
  std::uint32_t interval_ms = 600'000;  // 0: none is written, neither when the volume is closed
  // One that would take more than this part of the disk is given up. Three are there at the most.
  std::uint64_t disk_share = 32;
};

enum class CheckpointKeep : std::uint8_t {
  the_one_before,  // and this one
  only_this,
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
  CheckpointReport last;            // of this mount
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

  // Looks whether the last one is still true, and starts the background. Once.
  Result<> start();
  // Ends the background at once, and every write() under way.
  void stop();
  // Rows that a checkpoint is made for are being staged. Under any lock.
  void note_change() { changed_.store(true, std::memory_order_relaxed); }

  // Writes one now, at full speed, whatever the interval, and commits it. Errors: cancelled by
  // stop(); no_space; too_big: past its share of the disk; those of a commit.
  Result<CheckpointReport> write(CheckpointKeep keep);
  // The volume is closing and nobody else changes it: writes one if something changed since the
  // last. After stop(), before the committer stops. What goes wrong is only logged.
  void write_last();

  CheckpointStats stats() const;

 private:
  struct Moment;
  struct Kept;

  void run();
  Result<CheckpointReport> write_one(CheckpointKeep keep, bool is_paced, bool is_last);
  // Commits, and takes the view of what is durable then. No view: nothing changed.
  Result<Moment> take_view(bool only_if_changed);
  Result<> install(const CheckpointRecords& made, CheckpointKeep keep, bool is_last);
  Result<> mark_closed();
  Result<std::vector<Kept>> kept() const;  // oldest first
  void release(const Kept& old);
  Result<> admit(std::uint64_t written_bytes) const;
  Result<> pause_as_long_as(std::chrono::steady_clock::duration worked);
  void note_failure(const Error& error);
  std::uint64_t session() const;

  metadata::BackingDirectory& directory_;
  metadata::Database& database_;
  SegmentStore& store_;
  Committer& committer_;
  Ballast& ballast_;
  const CheckpointOptions options_;
  std::atomic<bool> changed_{true};
  bool is_started_ = false;

  std::mutex run_mutex_;  // one at a time writes

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  CheckpointStats stats_;
  std::string last_failure_;
  std::thread thread_;
};

}  // namespace nacre::fs
