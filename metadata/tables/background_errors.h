// SPDX-License-Identifier: Apache-2.0
// Tracks the errors of RocksDB's own threads on a full disk, and decides when RocksDB gets to know
// them.
//
// RocksDB 7.8.3 loses a requested flush if an error stops its threads before the flush begins:
// DBImpl::BackgroundFlush() returns without taking the request off its queue, and from then on
// SchedulePendingFlush() takes the flush for queued. A thread that resumes RocksDB then waits for
// ever. Only one flush runs at a time, requested by the writing thread or by its resumption, so
// only the error of a compaction can come between. This listener holds such an error back until no
// flush is under way. RocksDB is resumed only when it is at rest and begins no compaction.
//
// DBImpl::Resume() waits until no compaction is scheduled. A compaction that does not fit is
// scheduled again each time that it fails, unless an error has stopped RocksDB. And RocksDB 7.8.3
// never forgets that it was stopped once (ErrorHandler::is_db_stopped_), so it waits in this way
// even if it has no error left. So it is resumed only after an error, and while it is being resumed
// a failed compaction stops it.
//
// Thread-safe.
#pragma once

#include <rocksdb/listener.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gpu_engine/base/mutex.h"

namespace nacre::metadata {

class BackgroundErrors final : public rocksdb::EventListener {
 public:
  // file_size gives the stored size of a file under db/, by its path; it may be called on any
  // thread.
  explicit BackgroundErrors(std::function<std::uint64_t(const std::string& path)> file_size)
      : file_size_(std::move(file_size)) {}

  // A failed flush stops RocksDB's threads, and each write fails until RocksDB is resumed, even if
  // there is room again. So the writing thread asks here before each write.
  bool met_no_space() const { return met_no_space_; }

  // Called by the writing thread before each flush that it requests. Returns false if an error has
  // stopped RocksDB or is about to; then RocksDB must be resumed first. After true, end_flush()
  // must follow.
  bool begin_flush();
  void end_flush();
  // Whether begin_flush() would return false.
  bool has_stopped() const;
  // Whether RocksDB has an error that it has not recovered from.
  bool has_error() const;
  // Forgets the errors so far; called just before RocksDB is resumed. Returns false and forgets
  // nothing if RocksDB was stopped and waited is false: its threads must be at rest first. After
  // true, end_resume() must follow.
  bool begin_resume(bool waited);
  // succeeded: whether RocksDB has recovered; otherwise it must be resumed again.
  void end_resume(bool succeeded);

  // The stored bytes of the tables that the calling thread compacts. None if it is not one of
  // RocksDB's threads that compact.
  static std::optional<std::uint64_t> compacted_bytes();

  // Called on RocksDB's threads. OnBackgroundError() may wait for end_flush().
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;

 private:
  const std::function<std::uint64_t(const std::string&)> file_size_;
  std::atomic<bool> met_no_space_{false};
  mutable Mutex mutex_;
  ConditionVariable flush_ended_;
  bool is_flushing_ NACRE_GUARDED_BY(mutex_) = false;
  bool is_resuming_ NACRE_GUARDED_BY(mutex_) = false;
  bool has_stopped_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::metadata
