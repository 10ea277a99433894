// SPDX-License-Identifier: Apache-2.0
// The parts that all open files share: the cache of clean chunks, the budget of dirty bytes, and
// the threads that flush and read ahead. There is one for each mounted volume. Thread-safe.
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
  void stop();

  // The sizes of the queues. Read-ahead past its queue is left out; past the other one, chunks are
  // looked for among all rows.
  static constexpr std::size_t queued_read_ahead_max = 64;
  static constexpr std::size_t patched_chunk_count_max = 16384;

  // Step (a) of a commit: flushes the data of the scope that was dirty when this was called. If it
  // is at most inline_bytes_max and the scope names files, the data goes into the WriteBatch. Tries
  // all files, then returns the first error. A file that failed stays dirty and is added to
  // failures.
  Result<> flush(const CommitScope& scope, std::uint64_t inline_bytes_max, FileFailures& failures);
  bool is_dirty(InodeNumber inode) const;

  struct Stats {
    std::uint64_t dirty_bytes = 0;
    std::uint64_t dirty_files = 0;
    std::size_t read_ahead_queue = 0;  // ranges that wait for a thread
    ChunkCache::Stats chunks;
  };
  Stats stats() const;

  // Used by FileData and Flush:
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
  // The turn of a flush, from its admission until its records are on disk. While the ballast has
  // been given up, one flush at a time has it: each is judged by the room that earlier ones left,
  // and none takes room that was promised to another. Otherwise the turn is empty, and no flush
  // waits.
  using FlushTurn = std::unique_lock<FairMutex>;
  // Admits a flush of this many bytes. Error: no_space if a full disk needs its room for deletes. A
  // flush that may use the reserve only waits for its turn.
  Result<FlushTurn> begin_flush(std::uint64_t bytes, bool may_use_reserve);
  // Tells that a flush has brought dirty bytes to disk, so earlier errors are over.
  void note_written();
  // Waits until the budget of dirty bytes has room. Error: no_space if flushing fails for lack of
  // space.
  Result<> wait_for_budget();
  // Tells that the file has a run of complete chunks, which can be flushed at once.
  void want_streaming(std::shared_ptr<FileData> file);
  void want_read_ahead(std::shared_ptr<FileData> file, ReadAhead::Range range);
  // Used by compaction: bytes that went into the table inlined, and chunks that got many patches.
  void note_inlined(std::uint64_t bytes) { inlined_bytes_ += bytes; }
  std::uint64_t inlined_bytes() const { return inlined_bytes_; }
  void note_patched(InodeNumber inode, ChunkIndex index);
  PatchedChunks take_patched();

 private:
  void run_flusher();
  // If it is due, gives memory that was not used for a while back to the system, with the mutex
  // released. Returns whether it did.
  bool trim_memory(std::unique_lock<std::mutex>& lock);
  void run_read_ahead();
  // Returns the first file that no other flusher has, or null. Called with flusher_mutex_ held.
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
  std::set<const FileData*> streamed_;  // files that a flusher works on
  // The error of the last failed flush, until a flush succeeds or little is left to write. While it
  // is set, no writer waits for room.
  Result<> pressure_error_ = {};
  std::optional<ErrorCode> said_error_;  // the logged error, until little is left to write
  std::atomic<bool> has_failed_{false};  // whether either is set; changes under flusher_mutex_
  std::optional<std::chrono::steady_clock::time_point>
      next_trim_;  // set while there is memory to give back
  bool stopping_ = false;
  std::vector<std::thread> flushers_;
  FairMutex flush_turn_;  // taken after files' flush mutexes and before the operation lock

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
