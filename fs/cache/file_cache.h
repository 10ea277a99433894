// SPDX-License-Identifier: Apache-2.0
// What all open files share: the clean chunk cache, the dirty budget, and the threads that flush
// and read ahead. One per mounted volume; thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "fs/cache/chunk_cache.h"
#include "fs/cache/fair_mutex.h"
#include "fs/cache/file_data.h"
#include "fs/space/compaction.h"
#include "fs/store/chunk_map.h"
#include "fs/store/committer.h"

namespace nacre::fs {

// Files whose data could not be flushed, and why.
using FileFailures = std::map<InodeNumber, Error>;

// Trouble with one file, and not with the medium or with memory.
constexpr bool is_of_one_file(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::tampered || code == ErrorCode::missing ||
         code == ErrorCode::rolled_back || code == ErrorCode::wrong_key;
}
// Of several files' errors the one to act on: the first that is not of one file alone.
inline void keep_gravest(Result<>& outcome, const Result<>& next) {
  if (next) return;
  if (outcome || is_of_one_file(outcome.error().code)) outcome = next;
}

struct FileCacheOptions {
  std::uint64_t dirty_budget_bytes = 64u << 20;
  std::uint64_t cache_budget_bytes = 256u << 20;
  std::uint64_t read_ahead_bytes_max = 8u << 20;
  unsigned read_ahead_thread_count = 2;
  // Flushes of different files at once; those of one file take turns.
  unsigned flusher_count = 1;
  // A flush takes no more chunks past this, so that a payload stays within the engine's reach.
  std::uint64_t flush_size_bytes_max = 8u << 20;
  // A run of this many complete chunks is worth a payload of its own.
  std::uint64_t streaming_chunk_count = 32;
  Ballast* ballast = nullptr;  // borrowed; none: the disk alone says when it is full
};

// Told when what a file's inode row may say has changed. Called under the operation lock: it may
// only remember the number.
class DurableObserver {
 public:
  virtual ~DurableObserver() = default;
  virtual void durable_state_changed(InodeNumber inode) = 0;
};

class FileCache {
 public:
  // Everything passed by reference outlives the cache.
  FileCache(metadata::Database& database, SegmentStore& store, Committer& committer,
            DurableObserver& observer, std::uint32_t chunk_size_bytes,
            const FileCacheOptions& options);
  ~FileCache();  // stop()

  // Starts the threads. Without them writes are flushed by commits alone.
  void start();
  // Ends the threads; dirty bytes stay dirty.
  void stop();

  // Where its queues end: what comes then is not read ahead, or looked for among all rows.
  static constexpr std::size_t queued_read_ahead_max = 64;
  static constexpr std::size_t patched_chunk_count_max = 16384;

  // Step (a) of a commit: flushes what was dirty in the scope when this was called. When it is at
  // most inline_bytes_max and the scope names files, it goes into the WriteBatch. The first error
  // is returned, after all files have been tried; a file that failed stays dirty and is added to
  // failures.
  Result<> flush(const CommitScope& scope, std::uint64_t inline_bytes_max, FileFailures& failures);
  bool is_dirty(InodeNumber inode) const;

  struct Stats {
    std::uint64_t dirty_bytes = 0;
    std::uint64_t dirty_files = 0;
    std::size_t read_ahead_queue = 0;  // pieces that wait for a thread
    ChunkCache::Stats chunks;
  };
  Stats stats() const;

  // For FileData and Flush.
  metadata::Database& database() { return database_; }
  SegmentStore& store() { return store_; }
  Committer& committer() { return committer_; }
  DurableObserver& observer() { return observer_; }
  ChunkMap& map() { return map_; }
  ChunkCache& chunks() { return chunks_; }
  const FileCacheOptions& options() const { return options_; }
  std::uint32_t chunk_size_bytes() const { return map_.chunk_size_bytes(); }

  void add_dirty_file(std::shared_ptr<FileData> file);
  void remove_dirty_file(InodeNumber inode);
  void change_dirty_bytes(std::int64_t change);
  std::uint64_t dirty_bytes() const { return static_cast<std::uint64_t>(dirty_bytes_.load()); }
  // From its admission until its records are on disk. Where the ballast is not held, one flush at a
  // time has it: each is judged by the room that those before it have left, and none takes room
  // that was promised to another. Elsewhere it is empty, and nobody waits.
  using FlushTurn = std::unique_lock<FairMutex>;
  // May a flush write bytes now? no_space when a full disk needs its room for deletes; a flush that
  // may use the reserve gets its turn alone.
  Result<FlushTurn> begin_flush(std::uint64_t bytes, bool may_use_reserve);
  // A flush has brought dirty bytes to disk: what kept others from it is over.
  void note_written();
  // Waits until the dirty budget has room; no_space when flushing fails for want of it.
  Result<> wait_for_budget();
  // The file has a run of complete chunks that can be streamed out.
  void want_streaming(std::shared_ptr<FileData> file);
  void want_read_ahead(std::shared_ptr<FileData> file, ReadAhead::Range range);
  // For compaction: what went into the table inlined, and chunks that got many patches.
  void note_inlined(std::uint64_t bytes) { inlined_bytes_ += bytes; }
  std::uint64_t inlined_bytes() const { return inlined_bytes_; }
  void note_patched(InodeNumber inode, ChunkIndex index);
  PatchedChunks take_patched();

 private:
  void run_flusher();
  // When it is due memory that nobody used for a while goes back to the system, without the mutex:
  // then true.
  bool trim_memory(std::unique_lock<std::mutex>& lock);
  void run_read_ahead();
  // Under flusher_mutex_: the first file that no other flusher has; none.
  std::shared_ptr<FileData> take_streaming();
  bool has_streaming() const;
  Result<> stream_out(const std::shared_ptr<FileData>& file);
  Result<> flush_some();
  void note_little_left();
  std::vector<std::shared_ptr<FileData>> dirty_files_of(const CommitScope& scope) const;

  metadata::Database& database_;
  SegmentStore& store_;
  Committer& committer_;
  DurableObserver& observer_;
  const FileCacheOptions options_;
  ChunkMap map_;
  ChunkCache chunks_;

  mutable std::mutex dirty_mutex_;  // guards dirty_files_ and cursor_
  std::map<InodeNumber, std::shared_ptr<FileData>> dirty_files_;
  InodeNumber cursor_;
  std::atomic<std::int64_t> dirty_bytes_{0};

  mutable std::mutex flusher_mutex_;
  std::condition_variable flusher_wake_;
  std::condition_variable flusher_pause_;
  std::condition_variable room_;
  std::deque<std::shared_ptr<FileData>> streaming_;
  std::set<const FileData*> streamed_;  // that a flusher is busy with
  // Of the last flush that failed, until one has written or there is little left to write: nobody
  // waits for room meanwhile.
  Result<> pressure_error_ = {};
  std::optional<ErrorCode> said_error_;  // what the log was told, until there is little left
  std::atomic<bool> has_failed_{false};  // either may be there; changes under flusher_mutex_
  std::optional<std::chrono::steady_clock::time_point> next_trim_;  // while there is memory
  bool stopping_ = false;
  std::vector<std::thread> flushers_;
  FairMutex flush_turn_;  // after files' flush mutexes, before the operation lock

  std::atomic<std::uint64_t> inlined_bytes_{0};
  std::mutex patched_mutex_;  // guards the next two
  std::set<std::pair<InodeNumber, ChunkIndex>> patched_;
  bool patched_are_all_ = true;

  mutable std::mutex read_ahead_mutex_;
  std::condition_variable read_ahead_wake_;
  struct Ahead {
    std::shared_ptr<FileData> file;
    ReadAhead::Range range;
  };
  std::deque<Ahead> read_ahead_;
  bool read_ahead_stopping_ = false;
  std::vector<std::thread> read_ahead_threads_;
};

}  // namespace nacre::fs
