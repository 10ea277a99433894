// SPDX-License-Identifier: Apache-2.0
// The scrub of a mounted volume: on a thread of its own it reads every committed record, and every
// file that the database depends on, and checks their CRCs, beside everything else that goes on.
//
// It keeps to a rate, a quarter of it while users read or write. It holds no lock and pins nothing:
// compaction and appends go on, a segment that a commit removes meanwhile is left out from there
// on, and so are segments that are newer than the scrub (what compaction moves into them it has
// checked itself). How far it is stands in the system table, saved every few seconds with an
// ordinary commit: after umount, kill or power loss the next mount goes on from there, unless it
// was paused.
//
// At the end it looks up whose data lies in what is damaged, for all places at once.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fs/check/segment_scrub.h"
#include "fs/mount/mounted.h"
#include "fs/scrub/rate_limit.h"
#include "metadata/format/scrub_row.h"

namespace nacre::fs {

// Time as the scrubber sees it; tests have their own.
class ScrubClock {
 public:
  using Clock = RateLimit::Clock;
  virtual ~ScrubClock() = default;
  virtual Clock::time_point now() { return Clock::now(); }
  // Until the time is over or is_over() holds; lock and wake as for a condition variable.
  virtual void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& wake,
                    Clock::duration time, const std::function<bool()>& is_over) {
    wake.wait_for(lock, time, is_over);
  }
};

struct ScrubberOptions {
  std::uint64_t rate_bytes_per_second = 64u << 20;  // where nobody says another; 0: no limit
  std::chrono::milliseconds save_interval{5000};
  bool may_name_files = true;         // in the log; --status names them
  std::shared_ptr<ScrubClock> clock;  // none: the system's
};

enum class ScrubCommand : std::uint8_t {
  begin,  // or go on with one that is paused; one that runs only takes the rate
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

  // Goes on with what an earlier mount left.
  void start();
  // Ends the thread at once, and puts how far it is into the open group. Before the volume closes.
  void close();

  // What the command does is durable when this returns. not_found when there is none to pause,
  // resume or stop; cancelled after close(); otherwise what the commit gives.
  Result<metadata::ScrubRow> apply(ScrubCommand command, std::optional<std::uint64_t> rate);
  metadata::ScrubRow status() const;
  // Waits until none is running; false when the time is up.
  bool wait_until_idle(std::chrono::milliseconds time);

 private:
  class SegmentVisitor;
  void run();
  Result<> pass();
  Result<> scrub_segments();
  Result<> scrub_segment(metadata::SegmentNumber number, const metadata::SegmentRow& row,
                         std::uint64_t begin);
  // A commit removed it, or is about to.
  Result<bool> is_gone(metadata::SegmentNumber number) const;
  Result<> scrub_database();
  Result<> scrub_database_file(const std::string& name);
  Result<> finish();
  void end(const Result<>& outcome);
  Result<metadata::ScrubRow> make_new(std::uint64_t rate) const;
  Result<> pause_for(std::uint64_t bytes);
  Result<> save(bool at_once);
  void save_if_due();
  // Under mutex_: whether the pass in hand is still wanted.
  bool is_wanted() const;
  // Changes the row, unless the pass is no longer wanted: cancelled then.
  Result<> change(const std::function<void(metadata::ScrubRow&)>& change);
  void note(metadata::ScrubPlace place);  // to pending_

  Mounted& mounted_;
  const engine::VolumeId volume_id_;
  const ScrubberOptions options_;
  const std::shared_ptr<ScrubClock> clock_;

  std::mutex apply_mutex_;  // one command at a time
  std::mutex save_mutex_;   // rows are saved in their order; before mutex_

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  metadata::ScrubRow row_;
  std::uint64_t ordinal_ = 0;  // grows with every scrub that begins
  bool closing_ = false;
  bool is_working_ = false;

  // Of the thread alone.
  std::uint64_t pass_ordinal_ = 0;  // changes under mutex_
  std::unique_ptr<SegmentScrub> segment_scrub_;
  std::optional<RateLimit> limit_;
  std::uint64_t seen_activity_ = 0;
  ScrubClock::Clock::time_point stretch_began_;
  ScrubClock::Clock::time_point saved_at_;
  std::vector<metadata::ScrubPlace> pending_;  // damage in what is not yet counted as done
  std::thread thread_;
};

}  // namespace nacre::fs
