// SPDX-License-Identifier: Apache-2.0
// What RocksDB's own threads meet when the disk is full, and when RocksDB may hear of it.
//
// RocksDB 7.8.3 loses a flush that is asked for when an error stops its threads before the flush
// begins: DBImpl::BackgroundFlush() returns without taking the request off its queue, and
// SchedulePendingFlush() takes it for queued from then on. Whoever resumes waits for it for ever.
// Only one flush runs at a time, asked for by the writing thread or by a resumption of that thread,
// so only a compaction's error can come between. It waits here until no flush is under way; and
// what is resumed is at rest, and has no compaction begin.
//
// Thread-safe.
#pragma once

#include <rocksdb/listener.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace nacre::metadata {

class BackgroundErrors final : public rocksdb::EventListener {
 public:
  // A failed flush stops RocksDB's threads, and every write fails until somebody resumes them,
  // although there may be room again. So whoever writes next asks here first.
  bool met_no_space() const { return met_no_space_; }
  void note_no_space() { met_no_space_ = true; }

  // By the writing thread, around each flush that it asks for. False: an error has stopped RocksDB,
  // or is about to; it must be resumed first. After true, end_flush() must follow.
  bool begin_flush();
  void end_flush();
  // begin_flush() would say no.
  bool has_stopped() const;
  // Just before resuming: what goes wrong from then on counts anew. False, and nothing is
  // forgotten, when RocksDB was stopped and waited is false: its threads must come to rest before.
  bool clear(bool waited);

  // RocksDB has this thread compact.
  static bool is_compacting();

  // On RocksDB's threads. The second may wait for end_flush().
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override;
  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* status) override;

 private:
  std::atomic<bool> met_no_space_{false};
  mutable std::mutex mutex_;
  std::condition_variable flush_ended_;
  bool is_flushing_ = false;
  bool has_stopped_ = false;
};

}  // namespace nacre::metadata
