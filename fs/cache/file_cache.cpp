// SPDX-License-Identifier: Apache-2.0
// The threads that flush and read ahead, and the budget of dirty bytes that writers wait for.
#include "fs/cache/file_cache.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <utility>

#include <spdlog/spdlog.h>

#include "fs/cache/flush.h"
#include "gpu_engine/base/check.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

namespace {

// The maximum number of files in one flush.
constexpr std::size_t flush_file_count_max = 256;
// The flusher's pause after a failure.
constexpr auto failure_pause = std::chrono::milliseconds(200);
// Memory for dirty bytes is kept for this long, for the next ones.
constexpr auto memory_pause = std::chrono::milliseconds(2000);

}  // namespace

FileCache::FileCache(metadata::Database& database, SegmentStore& store, Committer& committer,
                     DurableObserver& observer, std::uint32_t chunk_size_bytes,
                     const FileCacheOptions& options)
    : database_(database),
      store_(store),
      committer_(committer),
      observer_(observer),
      options_(options),
      map_(database, store, chunk_size_bytes),
      chunks_(options.cache_budget_bytes),
      flush_cost_(store, chunk_size_bytes) {}

FileCache::~FileCache() {
  stop();
  // Data that could not be written is dropped first, because dropping it changes the members below.
  std::exchange(streaming_, {}).clear();
  std::exchange(dirty_files_, {}).clear();
}

void FileCache::start() {
  for (unsigned i = 0; i < std::max(1u, options_.flusher_count); ++i) {
    flushers_.emplace_back([this] { run_flusher(); });
    pthread_setname_np(flushers_.back().native_handle(), "flush");
  }
  for (unsigned i = 0; i < options_.read_ahead_thread_count; ++i) {
    read_ahead_threads_.emplace_back([this] { run_read_ahead(); });
    pthread_setname_np(read_ahead_threads_.back().native_handle(), "read-ahead");
  }
}

void FileCache::stop() {
  {
    LockGuard lock(flusher_mutex_);
    stopping_ = true;
  }
  flusher_wake_.notify_all();
  flusher_pause_.notify_all();
  room_.notify_all();
  {
    LockGuard lock(read_ahead_mutex_);
    read_ahead_stopping_ = true;
    read_ahead_.clear();
  }
  read_ahead_wake_.notify_all();
  for (std::thread& thread : flushers_)
    thread.join();
  flushers_.clear();
  for (std::thread& thread : read_ahead_threads_)
    thread.join();
  read_ahead_threads_.clear();
}

void FileCache::add_dirty_file(std::shared_ptr<FileData> file) {
  LockGuard lock(dirty_mutex_);
  const InodeNumber inode = file->inode();
  dirty_files_[inode] = std::move(file);
}

void FileCache::remove_dirty_file(InodeNumber inode) {
  std::shared_ptr<FileData>
      last;  // dropped after the lock is released, because it may be the last reference
  LockGuard lock(dirty_mutex_);
  const auto place = dirty_files_.find(inode);
  if (place == dirty_files_.end()) return;
  last = std::move(place->second);
  dirty_files_.erase(place);
}

bool FileCache::is_dirty(InodeNumber inode) const {
  LockGuard lock(dirty_mutex_);
  return dirty_files_.contains(inode);
}

std::uint64_t FileCache::flush_room_bytes() const {
  const std::int64_t cost = flush_cost_bytes_;
  NACRE_CHECK(cost >= 0, "the flush of dirty bytes takes {} bytes", cost);
  return std::min(static_cast<std::uint64_t>(cost), dirty_bytes() + kept_room_bytes_max);
}

void FileCache::change_dirty_bytes(std::int64_t change, std::int64_t cost_change) {
  if (cost_change != 0) flush_cost_bytes_ += cost_change;
  if (change == 0) return;
  const std::int64_t now = dirty_bytes_ += change;
  NACRE_CHECK(now >= 0, "{} bytes are dirty, after a change by {}", now, change);
  const auto budget = static_cast<std::int64_t>(options_.dirty_budget_bytes);
  if (change < 0) {
    if (now <= budget / 2) note_little_left();
    if (now - change > budget) {
      LockGuard lock(flusher_mutex_);
      room_.notify_all();
    }
  } else if (now > budget / 2 && now - change <= budget / 2) {
    LockGuard lock(flusher_mutex_);
    flusher_wake_.notify_all();
  }
}

Result<> FileCache::wait_for_budget() {
  const auto budget = static_cast<std::int64_t>(options_.dirty_budget_bytes);
  if (dirty_bytes_ <= budget) return {};
  UniqueLock lock(flusher_mutex_);
  flusher_wake_.notify_all();
  room_.wait(lock, [&]() NACRE_REQUIRES(flusher_mutex_) {
    return dirty_bytes_ <= budget || !pressure_error_ || stopping_;
  });
  if (dirty_bytes_ > budget && !pressure_error_) return pressure_error_;
  return {};
}

void FileCache::note_written() {
  if (!has_failed_) return;
  LockGuard lock(flusher_mutex_);
  pressure_error_ = {};
}

void FileCache::note_little_left() {
  if (!has_failed_) return;
  LockGuard lock(flusher_mutex_);
  pressure_error_ = {};
  said_error_.reset();
  has_failed_ = false;
}

void FileCache::want_streaming(std::shared_ptr<FileData> file) {
  LockGuard lock(flusher_mutex_);
  if (std::find(streaming_.begin(), streaming_.end(), file) != streaming_.end()) return;
  streaming_.push_back(std::move(file));
  flusher_wake_.notify_one();
}

void FileCache::want_read_ahead(std::shared_ptr<FileData> file, ReadAhead::Range range) {
  LockGuard lock(read_ahead_mutex_);
  // The range is cut into pieces, so that several threads share it.
  constexpr std::uint64_t piece = 1u << 20;
  for (std::uint64_t done = 0; done < range.size; done += piece) {
    if (read_ahead_stopping_ || read_ahead_.size() >= queued_read_ahead_max) return;
    read_ahead_.push_back(Ahead{file, {range.offset + done, std::min(piece, range.size - done)}});
    read_ahead_wake_.notify_one();
  }
}

void FileCache::note_patched(InodeNumber inode, ChunkIndex index) {
  LockGuard lock(patched_mutex_);
  if (patched_.size() < patched_chunk_count_max) {
    patched_.emplace(inode, index);
  } else if (!patched_.contains({inode, index})) {
    patched_are_all_ = false;
  }
}

PatchedChunks FileCache::take_patched() {
  LockGuard lock(patched_mutex_);
  const auto taken = std::exchange(patched_, {});
  return {.chunks = {taken.begin(), taken.end()}, .are_all = std::exchange(patched_are_all_, true)};
}

void FileCache::run_read_ahead() {
  UniqueLock lock(read_ahead_mutex_);
  while (true) {
    read_ahead_wake_.wait(lock, [&]() NACRE_REQUIRES(read_ahead_mutex_) {
      return read_ahead_stopping_ || !read_ahead_.empty();
    });
    if (read_ahead_stopping_) return;
    const Ahead next = std::move(read_ahead_.front());
    read_ahead_.pop_front();
    lock.unlock();
    try {
      next.file->prefetch(next.range.offset, next.range.size);
    } catch (const std::bad_alloc&) {
      // Without memory the reader loads the range itself.
    }
    lock.lock();
  }
}

bool FileCache::has_streaming() const {
  return std::any_of(streaming_.begin(), streaming_.end(),
                     [&](const auto& file) NACRE_REQUIRES(flusher_mutex_) {
                       return !streamed_.contains(file.get());
                     });
}

std::shared_ptr<FileData> FileCache::take_streaming() {
  const auto place = std::find_if(streaming_.begin(), streaming_.end(),
                                  [&](const auto& file) NACRE_REQUIRES(flusher_mutex_) {
                                    return !streamed_.contains(file.get());
                                  });
  if (place == streaming_.end()) return nullptr;
  auto file = std::move(*place);
  streaming_.erase(place);
  streamed_.insert(file.get());
  return file;
}

bool FileCache::trim_memory(UniqueLock<Mutex>& lock) {
  PlainMemory& memory = store_.plain_memory();
  if (memory.is_empty()) {
    next_trim_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  const bool is_due = next_trim_ && now >= *next_trim_;
  if (is_due || !next_trim_) next_trim_ = now + memory_pause;
  if (!is_due) return false;
  const Unlocked unlocked(lock, flusher_mutex_);
  memory.trim(memory_pause);
  return true;
}

void FileCache::run_flusher() {
  const auto budget = static_cast<std::int64_t>(options_.dirty_budget_bytes);
  UniqueLock lock(flusher_mutex_);
  while (true) {
    trim_memory(lock);
    while (!stopping_ && !has_streaming() && dirty_bytes_ <= budget / 2) {
      if (trim_memory(lock)) continue;
      if (const auto until = next_trim_) {  // a copy, because other threads may change it
        flusher_wake_.wait_until(lock, *until);
      } else {
        flusher_wake_.wait(lock);
      }
    }
    if (stopping_) return;
    std::shared_ptr<FileData> stream = take_streaming();
    lock.unlock();
    const Result<> outcome = stream ? stream_out(stream) : flush_some();
    lock.lock();
    if (stream) {
      // Data that was written in the meantime is flushed by this thread, unless another one is
      // free.
      streamed_.erase(stream.get());
      lock.unlock();
      stream.reset();
      lock.lock();
    }
    if (!outcome) {
      // The log has an error once, because the flush is tried repeatedly.
      if (said_error_ != outcome.error().code) {
        spdlog::warn("writing back: {}", outcome.error().message);
        said_error_ = outcome.error().code;
      }
      pressure_error_ = outcome;
      has_failed_ = true;
      room_.notify_all();
      flusher_pause_.wait_for(lock, failure_pause,
                              [&]() NACRE_REQUIRES(flusher_mutex_) { return stopping_; });
    }
  }
}

Result<> FileCache::stream_out(const std::shared_ptr<FileData>& file) {
  constexpr std::uint64_t end = std::numeric_limits<std::uint64_t>::max() - 1;
  for (std::uint64_t chunk = 0; chunk <= end;) {
    Flush flush(*this, FlushMode::complete_chunks);
    chunk = flush.add(file, chunk, end);
    NACRE_TRY(flush.run());
  }
  return {};
}

// Flushes some dirty bytes when the budget is used up, going round all dirty files. Files that
// another thread is flushing are passed over, as long as there are others.
Result<> FileCache::flush_some() {
  std::vector<std::shared_ptr<FileData>> files;
  {
    LockGuard lock(dirty_mutex_);
    auto place = dirty_files_.upper_bound(cursor_);
    for (; place != dirty_files_.end() && files.size() < flush_file_count_max; ++place) {
      files.push_back(place->second);
    }
    cursor_ = place == dirty_files_.end() ? InodeNumber{} : files.back()->inode();
  }
  constexpr std::uint64_t end = std::numeric_limits<std::uint64_t>::max() - 1;
  Flush flush(*this, FlushMode::everything);
  for (const auto& file : files) {
    if (flush.is_full()) {
      LockGuard lock(dirty_mutex_);
      cursor_ = InodeNumber{file->inode().value - 1};
      break;
    }
    flush.try_add(file, 0, end);
  }
  if (flush.is_empty() && !files.empty()) flush.add(files.front(), 0, end);
  return flush.run();
}

std::vector<std::shared_ptr<FileData>> FileCache::dirty_files_of(const CommitScope& scope) const {
  std::vector<std::shared_ptr<FileData>> files;
  LockGuard lock(dirty_mutex_);
  if (scope.everything) {
    files.reserve(dirty_files_.size());
    for (const auto& [inode, file] : dirty_files_)
      files.push_back(file);
  } else {
    for (const InodeNumber inode : scope.inodes) {
      const auto place = dirty_files_.find(inode);
      if (place != dirty_files_.end()) files.push_back(place->second);
    }
  }
  return files;
}

Result<FileCache::FlushTurn> FileCache::begin_flush(std::uint64_t bytes, bool may_use_reserve) {
  if (options_.ballast == nullptr || options_.ballast->is_held()) return FlushTurn();
  FlushTurn turn(flush_turn_);
  if (!may_use_reserve) NACRE_TRY(options_.ballast->admit_flush(bytes));
  return turn;
}

Result<> FileCache::flush(const CommitScope& scope, std::uint64_t inline_bytes_max,
                          FileFailures& failures) {
  const auto files = dirty_files_of(scope);
  std::uint64_t bytes = 0;
  for (const auto& file : files)
    bytes += file->dirty_bytes();
  const FlushMode mode = !scope.everything && bytes <= inline_bytes_max
                             ? FlushMode::everything_inline
                             : FlushMode::everything;
  Result<> outcome;
  std::size_t next = 0;
  std::uint64_t chunk = 0;  // index of the chunk in files[next]
  std::uint64_t last = 0;
  while (next < files.size()) {
    Flush flush(*this, mode, scope.moves_only);
    for (std::size_t count = 0;
         next < files.size() && count < flush_file_count_max && !flush.is_full(); ++count) {
      // Chunks past the present end belong to a later commit, so that this flush ends.
      if (chunk == 0) last = map_.chunk_count(files[next]->size());
      chunk = flush.add(files[next], chunk, last);
      if (chunk <= last) break;
      chunk = 0;
      ++next;
    }
    const Result<> ran = flush.run();
    if (ran) continue;
    keep_gravest(outcome, ran);
    flush.add_failures(failures);
    // If a file has failed, its other chunks are passed over.
    if (chunk != 0 && failures.contains(files[next]->inode())) {
      chunk = 0;
      ++next;
    }
  }
  // A flusher frees unused memory later.
  const LockGuard lock(flusher_mutex_);
  if (!next_trim_ && !store_.plain_memory().is_empty()) flusher_wake_.notify_one();
  return outcome;
}

FileCache::Stats FileCache::stats() const {
  Stats stats{.dirty_bytes = dirty_bytes(), .chunks = chunks_.stats()};
  {
    LockGuard lock(read_ahead_mutex_);
    stats.read_ahead_queue = read_ahead_.size();
  }
  LockGuard lock(dirty_mutex_);
  stats.dirty_files = dirty_files_.size();
  return stats;
}

}  // namespace nacre::fs
