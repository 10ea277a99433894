// SPDX-License-Identifier: Apache-2.0
// Holds back writers while compaction is far behind, so that dead records of a full volume stay
// within a bound even if a program overwrites without a pause.
//
// Writers get a credit of bytes. While the pacer is engaged, they may write as many bytes as
// compaction passes dead ones: twice as many if compaction has just fallen behind, as many in the
// balance, half as many if it is far behind. So dead bytes settle between the slack and twice the
// slack, and compaction catches up in the end. In addition writers get a small fixed rate, so that
// none waits for ever if compaction cannot go on.
//
// A write's data has been taken when the write is held; only its answer is kept back, so no thread
// waits. Held writes are in the order of their deadlines, and a deadline is the later, the larger
// the write is. So small writes go before large ones, and wait for little more than the write that
// went on last.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

struct WritePacerOptions {
  // The fixed rate of all writers together. Far past the bound it is a sixteenth of this. 0: none.
  std::uint64_t rate_min_bytes_per_second = 4u << 20;
  // The number of bytes that may be written at once after a moment without writes.
  std::uint64_t burst_bytes_max = 4u << 20;
};

struct WritePacerStats {
  std::uint64_t held_count = 0;     // writes that had to wait since the mount
  std::uint64_t waiting_count = 0;  // writes that wait now
  bool is_engaged = false;
};

class WritePacer {
 public:
  // note_written is called with the argument of may_go_on(), before that decides; it may engage the
  // pacer.
  explicit WritePacer(const WritePacerOptions& options,
                      std::function<void(std::uint64_t bytes)> note_written = nullptr)
      : options_(options), note_written_(std::move(note_written)) {}
  ~WritePacer();  // stop()

  // Holds writers back from now on. overrun is SpaceBound::overrun(), above 0.
  void engage(double overrun) NACRE_EXCLUDES(mutex_);
  // Lets all writers go on.
  void disengage() NACRE_EXCLUDES(mutex_);
  // Tells that compaction has passed this many dead bytes.
  void note_cleaned(std::uint64_t dead_bytes) NACRE_EXCLUDES(mutex_);
  // Whether a writer that wrote this many bytes may go on at once. If not, the caller calls hold().
  // Called under no lock; never waits.
  bool may_go_on(std::uint64_t bytes) NACRE_EXCLUDES(mutex_);
  // Calls go_on once, when the writer of this many bytes of that file may go on: on the pacer's
  // thread, on a thread that calls one of the functions above, or on this one. go_on must take no
  // lock of the volume and must not throw.
  void hold(metadata::InodeNumber inode, std::uint64_t bytes, std::function<void()> go_on) noexcept
      NACRE_EXCLUDES(mutex_);
  // Until the next call, writes of that file are not held, because a commit waits for them. Empty:
  // writes of all files may be held.
  void exempt(std::optional<metadata::InodeNumber> inode) NACRE_EXCLUDES(mutex_);
  // Lets all writers go on, now and from now on.
  void stop() NACRE_EXCLUDES(mutex_);

  bool is_engaged() const { return engaged_.load(std::memory_order_relaxed); }
  WritePacerStats stats() const NACRE_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    metadata::InodeNumber inode;
    std::uint64_t bytes;
    std::function<void()> go_on;
  };
  using Ready = std::vector<std::function<void()>>;

  void run() NACRE_EXCLUDES(mutex_);
  void add_locked(double bytes, Ready& ready) NACRE_REQUIRES(mutex_);
  template <typename IsWanted>
  void take_locked(IsWanted is_wanted, Ready& ready) NACRE_REQUIRES(mutex_);

  const WritePacerOptions options_;
  const std::function<void(std::uint64_t)> note_written_;
  std::atomic<bool> engaged_{false};

  mutable Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  double gain_ NACRE_GUARDED_BY(mutex_) = 0;  // bytes that may be written for each dead byte
  // Bytes that may be written; negative after a write that was larger.
  double credit_ NACRE_GUARDED_BY(mutex_) = 0;
  std::multimap<Clock::time_point, Held> held_ NACRE_GUARDED_BY(mutex_);  // by their deadlines
  std::optional<metadata::InodeNumber> exempt_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t held_count_ NACRE_GUARDED_BY(mutex_) = 0;
  std::thread thread_ NACRE_GUARDED_BY(mutex_);  // started with the first write that is held
};

}  // namespace nacre::fs
