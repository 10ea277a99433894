// SPDX-License-Identifier: Apache-2.0
// Holds back those who write while compaction is far behind: so that dead records of a full volume
// stay within a bound however long somebody overwrites without a pause.
//
// What a writer gets is counted in bytes, not in time. While the pacer is engaged, the dead bytes
// that compaction reads past are what may be written: twice as many where it has only just fallen
// behind, as many in the balance, half as many where it is far behind. So dead bytes settle between
// the slack and twice the slack, and compaction always gains on writers in the end. Beside that
// writers get a small rate of their own, so that nobody waits for a compaction that is held up.
//
// A write is held after its bytes were taken, and what is held is its answer: no thread waits. The
// queue is in the order of deadlines, and a deadline lies as far off as the write is long: what is
// small goes ahead of what is large, and waits for little more than the write that was let go last.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "metadata/format/rows.h"

namespace nacre::fs {

struct WritePacerOptions {
  // All writers together get it beside that, far past the bound a sixteenth of it; 0: nothing.
  std::uint64_t rate_min_bytes_per_second = 4u << 20;
  // What may be written at once after a moment in which nobody wrote.
  std::uint64_t burst_bytes_max = 4u << 20;
};

struct WritePacerStats {
  std::uint64_t held_count = 0;     // writes that had to wait, since the mount
  std::uint64_t waiting_count = 0;  // that wait now
  bool is_engaged = false;
};

class WritePacer {
 public:
  // note_written gets what may_go_on() was asked for, before it is decided: it may engage this.
  explicit WritePacer(const WritePacerOptions& options,
                      std::function<void(std::uint64_t bytes)> note_written = nullptr)
      : options_(options), note_written_(std::move(note_written)) {}
  ~WritePacer();  // stop()

  // From now on writers are held back. overrun: by what share of the slack dead bytes are past it,
  // above 0.
  void engage(double overrun);
  // Everybody may go on.
  void disengage();
  // Compaction read past so many dead bytes.
  void note_cleaned(std::uint64_t dead_bytes);
  // May a writer who wrote so many bytes write more at once? Else hold() says when. Called under no
  // lock; never waits.
  bool may_go_on(std::uint64_t bytes);
  // go_on is called once, when who wrote so many bytes of that file may write more: on a thread of
  // the pacer's, of whoever calls the above, or this one. It takes no locks of the volume's and
  // does not throw.
  void hold(metadata::InodeNumber inode, std::uint64_t bytes, std::function<void()> go_on) noexcept;
  // Writes of that file are not held until the next call: a commit waits for them. none: of all
  // files they are.
  void exempt(std::optional<metadata::InodeNumber> inode);
  // Everybody may go on, now and later.
  void stop();

  bool is_engaged() const { return engaged_.load(std::memory_order_relaxed); }
  WritePacerStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Held {
    metadata::InodeNumber inode;
    std::uint64_t bytes;
    std::function<void()> go_on;
  };
  using Ready = std::vector<std::function<void()>>;

  void run();
  void add_locked(double bytes, Ready& ready);
  template <typename IsWanted>
  void take_locked(IsWanted is_wanted, Ready& ready);

  const WritePacerOptions options_;
  const std::function<void(std::uint64_t)> note_written_;
  std::atomic<bool> engaged_{false};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  double gain_ = 0;    // bytes that may be written for each dead one
  double credit_ = 0;  // bytes that may be written; below 0: what was let go was more
  std::multimap<Clock::time_point, Held> held_;  // by their deadlines
  std::optional<metadata::InodeNumber> exempt_;
  std::uint64_t held_count_ = 0;
  std::thread thread_;  // from the first write that is held
};

}  // namespace nacre::fs
