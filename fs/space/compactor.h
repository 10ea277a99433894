// SPDX-License-Identifier: Apache-2.0
// Compaction: keeps the space of dead records within a bound, in the background, and frees all of
// it on request.
//
// The closed segment with the best ratio of gain to cost is emptied first (SegmentTable). In the
// background this goes on while dead bytes exceed the bound; the further they exceed it, the faster
// it goes. Past the bound and its slack (SpaceBound) it goes as fast as the disk, and writers are
// held back to its speed (WritePacer), without holding a lock. On an idle volume the thread also
// moves inlined small writes to segments, merges chunks of many patches and joins small segments;
// then it sleeps.
//
// no_space stops it until there is space again, and causes no other error. Any other error stops it
// until the next mount.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "fs/space/compaction.h"
#include "fs/space/free_space.h"
#include "fs/space/rekeyer.h"
#include "fs/space/space_bound.h"
#include "fs/space/write_pacer.h"
#include "fs/store/ballast.h"
#include "fs/store/chunk_map.h"
#include "fs/store/committer.h"
#include "fs/store/segment_store.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

struct CompactorOptions {
  SpaceBoundOptions bound;
  WritePacerOptions pacing;
  // The rate of bytes read and written while others use the volume and dead bytes are at the bound.
  // Past the bound it rises up to the speed of the disk. There is no limit while nothing else reads
  // or writes, and while writers are held back.
  std::uint64_t rate_bytes_per_second = 32u << 20;
  std::chrono::milliseconds idle_after{10'000};
  // Past this number of bytes inlined small writes are moved without waiting for an idle moment.
  std::uint64_t inlined_bytes_max = 8u << 20;
  // If at least this many bytes of the segments being filled are dead, they are closed for
  // compaction.
  std::uint64_t open_dead_bytes_min = 8u << 20;
  // If there are more small segments, they are joined, on an idle volume or by a trim.
  std::size_t small_segment_count_max = 64;
  // The maximum number of moved bytes that wait for a commit. The commit frees the old places, and
  // the rows of moved records take memory until then. Twice as much must fit into the room that the
  // ballast keeps for moving. In a rotation it holds for each lane.
  std::uint64_t uncommitted_bytes_max = 64u << 20;
  Ballast* ballast = nullptr;  // borrowed; null: only the disk tells when it is full
  // Borrowed. The directory whose disk gives writers room. Null: there is no bound by room.
  metadata::BackingDirectory* directory = nullptr;
  // As in RekeyerOptions.
  std::size_t rekey_batch_bytes = 4u << 20;
  unsigned rekey_lane_count = 0;
};

enum class CompactionGoal : std::uint8_t {
  space_ratio,  // the goal of the background thread
  everything,   // all segments that are worth emptying
};

struct CompactionReport {
  std::uint64_t segment_count = 0;  // segments that were rewritten
  std::uint64_t moved_bytes = 0;
  std::uint64_t freed_bytes = 0;  // by which the segment files shrank, without the bytes of writers
  std::uint64_t immovable_count = 0;  // segments with a record that cannot be opened
};
// done and total count dead bytes.
using CompactionProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct CompactorStats {
  std::uint64_t segment_count = 0;  // rewritten since the mount
  std::string state;                // "idle", "working", "waiting for space", "off", or an error
  WritePacerStats writers;
};

// Thread-safe.
class Compactor {
 public:
  // Everything passed by reference outlives it.
  Compactor(metadata::Database& database, SegmentStore& store, const ChunkMap& map,
            Committer& committer, RowKeeper& keeper, const CompactorOptions& options);
  ~Compactor();  // stop()

  void start();  // the background thread
  // Ends the background thread and every run(), at once: after the current piece of work. Called
  // before the parts that it uses are destroyed.
  void stop() NACRE_EXCLUDES(mutex_, run_mutex_);
  // Tells that a commit takes place, so there may be something to do. Cheap; may be called under
  // any lock.
  void wake() NACRE_EXCLUDES(mutex_);

  // Holds back writers while compaction is far behind. A server asks it before it answers a write.
  WritePacer& pacer() { return pacer_; }

  // Compacts on this thread until the goal is reached, then commits. Errors: cancelled after
  // stop(); those of compact_segment() and of the commit.
  Result<CompactionReport> run(CompactionGoal goal, const CompactionProgress& progress)
      NACRE_EXCLUDES(run_mutex_);

  // Empties segments of older epochs for some seconds, by Rekeyer::run().
  Result<RekeyStep> rekey(const RekeyOrder& order) NACRE_EXCLUDES(run_mutex_, mutex_);

  CompactorStats stats() const NACRE_EXCLUDES(mutex_);

 private:
  static constexpr std::uint64_t all_hopeless = ~std::uint64_t{0};
  // While it exists, compaction does not empty segments for their dead bytes, so no writer waits
  // for that.
  class NotCleaning {
   public:
    explicit NotCleaning(Compactor& compactor)
        : compactor_(compactor), before_(compactor.hopeless_dead_bytes_.exchange(all_hopeless)) {
      compactor_.pacer_.disengage();
    }
    ~NotCleaning() { compactor_.hopeless_dead_bytes_ = before_; }
    NotCleaning(const NotCleaning&) = delete;
    NotCleaning& operator=(const NotCleaning&) = delete;

   private:
    Compactor& compactor_;
    const std::uint64_t before_;
  };
  enum class Speed : std::uint8_t { paced, full };

  void run_background() NACRE_EXCLUDES(mutex_);
  Result<> do_what_is_due(bool is_idle) NACRE_EXCLUDES(run_mutex_);
  Result<> clean_up(bool is_idle) NACRE_REQUIRES(run_mutex_);
  Result<> reach_bound(Speed speed, CompactionReport& report) NACRE_REQUIRES(run_mutex_);
  // True when there was a victim and it was read through.
  Result<bool> compact_one(double live_share_max, Speed speed, CompactionReport& report)
      NACRE_REQUIRES(run_mutex_);
  Result<> join_small(Speed speed, CompactionReport& report) NACRE_REQUIRES(run_mutex_);
  // Reads a victim to its end. Calls pause after each piece of work.
  Result<> rewrite(const Victim& victim, CompactionReport& report, const Pace& pause)
      NACRE_REQUIRES(run_mutex_) NACRE_EXCLUDES(mutex_);
  Result<> tidy_inlined(Speed speed) NACRE_REQUIRES(run_mutex_);
  Result<> tidy_patched(Speed speed) NACRE_REQUIRES(run_mutex_);
  Result<> tidy(InodeNumber inode, ChunkIndex index, Speed speed) NACRE_REQUIRES(run_mutex_);
  Result<> pace(std::uint64_t bytes, Speed speed) NACRE_REQUIRES(run_mutex_);
  Result<> commit_now_and_then(std::uint64_t moved_bytes, std::uint64_t empty_bytes)
      NACRE_REQUIRES(run_mutex_);
  Result<> commit_moves() NACRE_REQUIRES(run_mutex_);
  Result<> admit(const Victim& victim) NACRE_REQUIRES(run_mutex_);  // no_space
  SpaceBound bound();
  void note_written(std::uint64_t bytes);  // called by a writer, under no lock
  std::uint64_t look_bytes() const;        // a writer looks at the bound after this many bytes
  // Engages the pacer past the slack, if compaction can free the dead bytes.
  void hold_or_let_go(const SpaceBound& bound);
  void set_state(std::string state) NACRE_EXCLUDES(mutex_);

  metadata::Database& database_;
  SegmentStore& store_;
  const ChunkMap& map_;
  Committer& committer_;
  RowKeeper& keeper_;
  const CompactorOptions options_;
  Rekeyer rekeyer_;  // under run_mutex_, but for its stop()
  WritePacer pacer_;
  FreeSpace free_space_;                        // asked only if there is a directory
  std::atomic<std::uint64_t> unseen_bytes_{0};  // bytes written since the bound was looked at
  std::atomic<bool> has_background_{false};     // whether the thread runs
  // The dead bytes that the background thread could not free when it looked last.
  std::atomic<std::uint64_t> hopeless_dead_bytes_{all_hopeless};

  Mutex run_mutex_;  // held while compacting
  bool is_reaching_bound_ NACRE_GUARDED_BY(run_mutex_) = false;
  std::uint64_t uncommitted_bytes_ NACRE_GUARDED_BY(run_mutex_) = 0;
  std::uint64_t seen_activity_ NACRE_GUARDED_BY(run_mutex_) = 0;
  std::uint64_t tidied_inlined_bytes_ NACRE_GUARDED_BY(run_mutex_) = 0;
  bool tidied_once_ NACRE_GUARDED_BY(run_mutex_) = false;

  mutable Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  // True at first, for dead records of an earlier mount.
  bool woken_ NACRE_GUARDED_BY(mutex_) = true;
  CompactorStats stats_ NACRE_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace nacre::fs
