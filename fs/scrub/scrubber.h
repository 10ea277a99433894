// SPDX-License-Identifier: Apache-2.0
// The scrub of a mounted volume. A thread of its own reads every committed record and every file
// that the database depends on, and verifies their CRCs, while the volume is in use.
//
// It keeps to a rate, and to a quarter of that rate while users read or write. It holds no lock and
// pins no segment, so compaction and appends go on. It leaves out a segment that a commit removes
// in the meantime, and segments that are newer than the scrub: compaction verifies what it moves
// into them. Its place is a row of the system table, which an ordinary commit saves every few
// seconds. After an unmount, a kill or a power loss the next mount goes on from that place, unless
// the scrub was paused.
//
// At the end it looks up, for all damaged places together, which files use them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fs/check/segment_scrub.h"
#include "fs/mount/mounted.h"
#include "fs/scrub/rate_limit.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/format/scrub_row.h"

namespace nacre::fs {

// The clock of the scrubber. Tests pass one of their own.
class ScrubClock {
 public:
  using Clock = RateLimit::Clock;
  virtual ~ScrubClock() = default;
  virtual Clock::time_point now() { return Clock::now(); }
  // Waits until the time is over or is_over() returns true. lock and wake are used as by a
  // condition variable's wait_for().
  virtual void wait(UniqueLock<Mutex>& lock, ConditionVariable& wake, Clock::duration time,
                    const std::function<bool()>& is_over) {
    wake.wait_for(lock, time, is_over);
  }
};

struct ScrubberOptions {
  std::uint64_t rate_bytes_per_second = 64u << 20;  // unless a command names another; 0: no limit
  std::chrono::milliseconds save_interval{5000};
  bool may_name_files = true;         // in the log; --status always names them
  std::shared_ptr<ScrubClock> clock;  // null: the system's clock
};

enum class ScrubCommand : std::uint8_t {
  begin,  // begins a scrub, or goes on with a paused one; a running one only takes the new rate
  pause,
  resume,
  stop,
  status,
};
std::optional<ScrubCommand> scrub_command_of(std::string_view name);
std::string_view to_string(ScrubCommand command);

// Thread-safe.
class Scrubber {
 public:
  // The volume outlives it, and is closed after it.
  Scrubber(Mounted& mounted, const engine::VolumeId& volume_id, ScrubberOptions options);
  ~Scrubber();  // close()
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;

  // Starts the thread, which goes on with a scrub that an earlier mount left unfinished.
  void start() NACRE_EXCLUDES(mutex_);
  // Ends the thread at once, and puts the scrub's place into the open commit group. Called before
  // the volume closes.
  void close() NACRE_EXCLUDES(mutex_);

  // The effect of the command is durable when this returns. Errors: not_found if there is no scrub
  // to pause, resume or stop; cancelled after close(); those of the commit.
  Result<metadata::ScrubRow> apply(ScrubCommand command, std::optional<std::uint64_t> rate)
      NACRE_EXCLUDES(apply_mutex_, mutex_);
  metadata::ScrubRow status() const NACRE_EXCLUDES(mutex_);
  // Waits until no scrub is running. Returns false if the time was over first.
  bool wait_until_idle(std::chrono::milliseconds time) NACRE_EXCLUDES(mutex_);

 private:
  class SegmentVisitor;
  void run() NACRE_EXCLUDES(mutex_);
  Result<> pass();
  Result<> scrub_segments();
  Result<> scrub_segment(metadata::SegmentNumber number, const metadata::SegmentRow& row,
                         std::uint64_t begin);
  // Whether a commit has removed the segment, or is about to.
  Result<bool> is_gone(metadata::SegmentNumber number) const;
  Result<> scrub_database();
  Result<> scrub_database_file(const std::string& name);
  Result<> finish();
  void end(const Result<>& outcome);
  Result<metadata::ScrubRow> make_new(std::uint64_t rate) const;
  Result<> pause_for(std::uint64_t bytes) NACRE_EXCLUDES(mutex_);
  Result<> save(bool at_once) NACRE_EXCLUDES(save_mutex_);
  void save_if_due();
  // Whether the current pass is still wanted.
  bool is_wanted() const NACRE_REQUIRES(mutex_);
  // Changes the row. Error: cancelled if the current pass is no longer wanted.
  Result<> change(const std::function<void(metadata::ScrubRow&)>& change) NACRE_EXCLUDES(mutex_);
  void note(metadata::ScrubPlace place);  // to pending_

  Mounted& mounted_;
  const engine::VolumeId volume_id_;
  const ScrubberOptions options_;
  const std::shared_ptr<ScrubClock> clock_;

  Mutex apply_mutex_;  // one command at a time
  Mutex save_mutex_;   // rows are saved in their order; before mutex_

  mutable Mutex mutex_;
  ConditionVariable wake_;
  metadata::ScrubRow row_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t ordinal_ NACRE_GUARDED_BY(mutex_) = 0;  // grows with every scrub that begins
  bool closing_ NACRE_GUARDED_BY(mutex_) = false;
  bool is_working_ NACRE_GUARDED_BY(mutex_) = false;

  // Used by the thread only.
  std::uint64_t pass_ordinal_ = 0;  // changes under mutex_
  std::unique_ptr<SegmentScrub> segment_scrub_;
  std::optional<RateLimit> limit_;
  std::uint64_t seen_activity_ = 0;
  ScrubClock::Clock::time_point stretch_began_;
  ScrubClock::Clock::time_point saved_at_;
  std::vector<metadata::ScrubPlace> pending_;  // damage behind the place that was saved last
  std::thread thread_;
};

}  // namespace nacre::fs
