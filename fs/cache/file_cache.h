// SPDX-License-Identifier: Apache-2.0
// The parts that all open files share: the cache of clean chunks, the budget of dirty bytes, and
// the threads that flush and read ahead. There is one for each mounted volume. Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include "fs/cache/flush_cost.h"
#include "fs/space/compaction.h"
#include "fs/store/chunk_map.h"
#include "fs/store/committer.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// The files whose data could not be flushed, with the errors.
using FileFailures = std::map<InodeNumber, Error>;

// Whether the error concerns one file, and not the medium or memory.
constexpr bool is_of_one_file(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::tampered || code == ErrorCode::missing ||
         code == ErrorCode::rolled_back || code == ErrorCode::wrong_key;
}
// Keeps the more important one of two errors: the first that does not concern only one file.
inline void keep_gravest(Result<>& outcome, const Result<>& next) {
  if (next) return;
  if (outcome || is_of_one_file(outcome.error().code)) outcome = next;
}

struct FileCacheOptions {
  std::uint64_t dirty_budget_bytes = 64u << 20;
  std::uint64_t cache_budget_bytes = 256u << 20;
  std::uint64_t read_ahead_bytes_max = 8u << 20;
  unsigned read_ahead_thread_count = 2;
  // The number of flushes at a time. Flushes of the same file take turns.
  unsigned flusher_count = 1;
  // A flush takes no more chunks past this size, which keeps payloads within the engine's limit.
  std::uint64_t flush_size_bytes_max = 8u << 20;
  // A run of this many complete chunks is worth a payload of its own.
  std::uint64_t streaming_chunk_count = 32;
  Ballast* ballast = nullptr;  // borrowed; null: only the disk tells when it is full
};

// Called when a file's durable size or data bytes have changed, which its inode row may then take
// over. It is called under the operation lock, so it may only note the number.
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

  // Starts the threads. Without them only commits flush.
  void start();
  // Ends the threads; dirty bytes stay dirty.
  void stop() NACRE_EXCLUDES(flusher_mutex_, read_ahead_mutex_);

  // The sizes of the queues. Read-ahead past its queue is left out; past the other one, chunks are
  // looked for among all rows.
  static constexpr std::size_t queued_read_ahead_max = 64;
  static constexpr std::size_t patched_chunk_count_max = 16384;

  // Step (a) of a commit: flushes the data of the scope that was dirty when this was called. If it
  // is at most inline_bytes_max and the scope names files, the data goes into the WriteBatch. Tries
  // all files, then returns the first error. A file that failed stays dirty and is added to
  // failures.
  Result<> flush(const CommitScope& scope, std::uint64_t inline_bytes_max, FileFailures& failures)
      NACRE_EXCLUDES(flusher_mutex_);
  bool is_dirty(InodeNumber inode) const NACRE_EXCLUDES(dirty_mutex_);

  struct Stats {
    std::uint64_t dirty_bytes = 0;
    std::uint64_t dirty_files = 0;
    std::size_t read_ahead_queue = 0;  // ranges that wait for a thread
    ChunkCache::Stats chunks;
  };
  Stats stats() const NACRE_EXCLUDES(read_ahead_mutex_, dirty_mutex_);

  // Used by FileData and Flush:
  metadata::Database& database() { return database_; }
  SegmentStore& store() { return store_; }
  Committer& committer() { return committer_; }
  DurableObserver& observer() { return observer_; }
  ChunkMap& map() { return map_; }
  ChunkCache& chunks() { return chunks_; }
  const FileCacheOptions& options() const { return options_; }
  std::uint32_t chunk_size_bytes() const { return map_.chunk_size_bytes(); }
  const FlushCost& flush_cost() const { return flush_cost_; }

  void add_dirty_file(std::shared_ptr<FileData> file) NACRE_EXCLUDES(dirty_mutex_);
  void remove_dirty_file(InodeNumber inode) NACRE_EXCLUDES(dirty_mutex_);
  // cost_change is that of the room which flushing them may take.
  void change_dirty_bytes(std::int64_t change, std::int64_t cost_change)
      NACRE_EXCLUDES(flusher_mutex_);
  std::uint64_t dirty_bytes() const { return static_cast<std::uint64_t>(dirty_bytes_.load()); }
  // The room that is kept for the flush of all dirty bytes. It is an upper bound, which small
  // writes far apart reach seldom. So it is at most kept_room_bytes_max more than the dirty bytes.
  static constexpr std::uint64_t kept_room_bytes_max = 256u << 20;
  std::uint64_t flush_room_bytes() const;
  // The turn of a flush, from its admission until its records are on disk. While the ballast has
  // been given up, one flush at a time has it: each is judged by the room that earlier ones left,
  // and none takes room that was promised to another. Otherwise the turn is empty, and no flush
  // waits.
  using FlushTurn = std::unique_lock<FairMutex>;
  // Admits a flush of this many bytes. Error: no_space if a full disk needs its room for deletes. A
  // flush that may use the reserve only waits for its turn.
  Result<FlushTurn> begin_flush(std::uint64_t bytes, bool may_use_reserve);
  // The dirty bytes that were flushed since the start.
  void count_flushed(std::uint64_t bytes) { flushed_bytes_ += bytes; }
  std::uint64_t flushed_bytes() const { return flushed_bytes_; }
  // Tells that a flush has brought dirty bytes to disk, so earlier errors are over.
  void note_written() NACRE_EXCLUDES(flusher_mutex_);
  // Waits until the budget of dirty bytes has room. Error: no_space if flushing fails for lack of
  // space.
  Result<> wait_for_budget() NACRE_EXCLUDES(flusher_mutex_);
  // Tells that the file has a run of complete chunks, which can be flushed at once.
  void want_streaming(std::shared_ptr<FileData> file) NACRE_EXCLUDES(flusher_mutex_);
  void want_read_ahead(std::shared_ptr<FileData> file, ReadAhead::Range range)
      NACRE_EXCLUDES(read_ahead_mutex_);
  // Used by compaction: bytes that went into the table inlined, and chunks that got many patches.
  void note_inlined(std::uint64_t bytes) { inlined_bytes_ += bytes; }
  std::uint64_t inlined_bytes() const { return inlined_bytes_; }
  void note_patched(InodeNumber inode, ChunkIndex index) NACRE_EXCLUDES(patched_mutex_);
  PatchedChunks take_patched() NACRE_EXCLUDES(patched_mutex_);

 private:
  void run_flusher() NACRE_EXCLUDES(flusher_mutex_);
  // If it is due, gives memory that was not used for a while back to the system, with the mutex
  // released. Returns whether it did.
  bool trim_memory(UniqueLock<Mutex>& lock) NACRE_REQUIRES(flusher_mutex_);
  void run_read_ahead() NACRE_EXCLUDES(read_ahead_mutex_);
  // Returns the first file that no other flusher has, or null.
  std::shared_ptr<FileData> take_streaming() NACRE_REQUIRES(flusher_mutex_);
  bool has_streaming() const NACRE_REQUIRES(flusher_mutex_);
  Result<> stream_out(const std::shared_ptr<FileData>& file);
  Result<> flush_some() NACRE_EXCLUDES(dirty_mutex_);
  void note_little_left() NACRE_EXCLUDES(flusher_mutex_);
  std::vector<std::shared_ptr<FileData>> dirty_files_of(const CommitScope& scope) const
      NACRE_EXCLUDES(dirty_mutex_);

  metadata::Database& database_;
  SegmentStore& store_;
  Committer& committer_;
  DurableObserver& observer_;
  const FileCacheOptions options_;
  ChunkMap map_;
  ChunkCache chunks_;
  const FlushCost flush_cost_;

  mutable Mutex dirty_mutex_;
  std::map<InodeNumber, std::shared_ptr<FileData>> dirty_files_ NACRE_GUARDED_BY(dirty_mutex_);
  InodeNumber cursor_ NACRE_GUARDED_BY(dirty_mutex_);
  std::atomic<std::int64_t> dirty_bytes_{0};
  std::atomic<std::int64_t> flush_cost_bytes_{0};
  std::atomic<std::uint64_t> flushed_bytes_{0};

  mutable Mutex flusher_mutex_;
  ConditionVariable flusher_wake_;
  ConditionVariable flusher_pause_;
  ConditionVariable room_;
  std::deque<std::shared_ptr<FileData>> streaming_ NACRE_GUARDED_BY(flusher_mutex_);
  // Files that a flusher works on.
  std::set<const FileData*> streamed_ NACRE_GUARDED_BY(flusher_mutex_);
  // The error of the last failed flush, until a flush succeeds or little is left to write. While it
  // is set, no writer waits for room.
  Result<> pressure_error_ NACRE_GUARDED_BY(flusher_mutex_) = {};
  // The logged error, until little is left to write.
  std::optional<ErrorCode> said_error_ NACRE_GUARDED_BY(flusher_mutex_);
  std::atomic<bool> has_failed_{false};  // whether either is set; changes under flusher_mutex_
  // Set while there is memory to give back.
  std::optional<std::chrono::steady_clock::time_point> next_trim_ NACRE_GUARDED_BY(flusher_mutex_);
  bool stopping_ NACRE_GUARDED_BY(flusher_mutex_) = false;
  std::vector<std::thread> flushers_;
  FairMutex flush_turn_;  // taken after files' flush mutexes and before the operation lock

  std::atomic<std::uint64_t> inlined_bytes_{0};
  Mutex patched_mutex_;
  std::set<std::pair<InodeNumber, ChunkIndex>> patched_ NACRE_GUARDED_BY(patched_mutex_);
  bool patched_are_all_ NACRE_GUARDED_BY(patched_mutex_) = true;

  mutable Mutex read_ahead_mutex_;
  ConditionVariable read_ahead_wake_;
  struct Ahead {
    std::shared_ptr<FileData> file;
    ReadAhead::Range range;
  };
  std::deque<Ahead> read_ahead_ NACRE_GUARDED_BY(read_ahead_mutex_);
  bool read_ahead_stopping_ NACRE_GUARDED_BY(read_ahead_mutex_) = false;
  std::vector<std::thread> read_ahead_threads_;
};

}  // namespace nacre::fs
