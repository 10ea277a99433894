// SPDX-License-Identifier: Apache-2.0
// Compaction: keeps the space of dead records within a bound, in the background, and gives back all
// of it when asked to.
//
// The closed segment that gives most for what it costs is emptied first (SegmentTable). In the
// background that goes on while dead bytes take more than the bound allows; the further past it,
// the faster. Past the slack beside the bound as well (SpaceBound), it goes as fast as the disk
// does, and writers are held back to what it gets done (WritePacer); no lock is held meanwhile. On
// an idle volume the thread sleeps; there it also moves inlined small writes to segments, merges
// chunks of many patches and joins small segments.
//
// no_space stops it until there is space again, and nothing else hears of it. Any other error stops
// it until the next mount.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
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
#include "metadata/tables/database.h"

namespace nacre::fs {

struct CompactorOptions {
  SpaceBoundOptions bound;
  WritePacerOptions pacing;
  // Read and written together, beside others and at the bound; past it up to as fast as the disk
  // goes. Without a limit where nobody else reads or writes, and where writers are held back.
  std::uint64_t rate_bytes_per_second = 32u << 20;
  std::chrono::milliseconds idle_after{10'000};
  // Inlined small writes are moved without waiting for an idle moment past this.
  std::uint64_t inlined_bytes_max = 8u << 20;
  // The segments being filled are closed for compaction when that much of them must be dead.
  std::uint64_t open_dead_bytes_min = 8u << 20;
  // More small segments than that are joined, on an idle volume or by a trim.
  std::size_t small_segment_count_max = 64;
  // Moved bytes that wait for a commit: what they free is free only then, and their rows take
  // memory. Twice as much must fit into the room that the ballast keeps for moving. Of a rotation:
  // for each of its lanes.
  std::uint64_t uncommitted_bytes_max = 64u << 20;
  Ballast* ballast = nullptr;  // borrowed; none: the disk alone says when it is full
  // Borrowed; where the room is that writers may use; none: there is none.
  metadata::BackingDirectory* directory = nullptr;
  // See RekeyerOptions.
  std::size_t rekey_batch_bytes = 4u << 20;
  unsigned rekey_lane_count = 0;
};

enum class CompactionGoal : std::uint8_t {
  space_ratio,  // what the background does
  everything,   // all that is worth it
};

struct CompactionReport {
  std::uint64_t segment_count = 0;  // that were rewritten
  std::uint64_t moved_bytes = 0;
  std::uint64_t freed_bytes = 0;  // by which the segment files shrank, writers' bytes not counted
  std::uint64_t immovable_count = 0;  // segments found to hold a record that cannot be opened
};
// done and total: dead bytes.
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
  // Ends the background and every run() after the piece of work in hand: at once. Before whatever
  // it works on goes.
  void stop();
  // A commit is taking place: there may be something to do. Cheap; under any lock.
  void wake();

  // Holds back writers while this is far behind. A server asks it before it answers a write.
  WritePacer& pacer() { return pacer_; }

  // Compacts on this thread until the goal is reached, then commits. cancelled after stop(); else
  // what compact_segment() or the commit gives.
  Result<CompactionReport> run(CompactionGoal goal, const CompactionProgress& progress);

  // Empties segments of older epochs for some seconds: Rekeyer::run().
  Result<RekeyStep> rekey(const RekeyOrder& order);

  CompactorStats stats() const;

 private:
  static constexpr std::uint64_t all_hopeless = ~std::uint64_t{0};
  // While it exists nobody empties what is fullest of dead bytes, so no writer waits for that.
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

  void run_background();
  Result<> do_what_is_due(bool is_idle);
  Result<> clean_up(bool is_idle);  // under run_mutex_
  Result<> reach_bound(Speed speed, CompactionReport& report);
  // True when there was a victim and it was read through.
  Result<bool> compact_one(double live_share_max, Speed speed, CompactionReport& report);
  Result<> join_small(Speed speed, CompactionReport& report);
  // Reads a victim through; pause is called after each piece of work.
  Result<> rewrite(const Victim& victim, CompactionReport& report, const Pace& pause);
  Result<> tidy_inlined(Speed speed);
  Result<> tidy_patched(Speed speed);
  Result<> tidy(InodeNumber inode, ChunkIndex index, Speed speed);
  Result<> pace(std::uint64_t bytes, Speed speed);
  Result<> commit_now_and_then(std::uint64_t moved_bytes, std::uint64_t empty_bytes);
  Result<> commit_moves();
  Result<> admit(const Victim& victim);  // no_space
  SpaceBound bound();
  void note_written(std::uint64_t bytes);  // by a writer, under no lock
  std::uint64_t look_bytes() const;        // a writer looks at the bound after so many
  // Engages the pacer past the slack, where compaction can do something about it.
  void hold_or_let_go(const SpaceBound& bound);
  void set_state(std::string state);

  metadata::Database& database_;
  SegmentStore& store_;
  const ChunkMap& map_;
  Committer& committer_;
  RowKeeper& keeper_;
  const CompactorOptions options_;
  Rekeyer rekeyer_;  // under run_mutex_, but for its stop()
  WritePacer pacer_;
  FreeSpace free_space_;                        // asked only where there is a directory
  std::atomic<std::uint64_t> unseen_bytes_{0};  // written since anybody looked at the bound
  std::atomic<bool> has_background_{false};     // the thread runs
  // When the background looked last it could do nothing about so many dead bytes.
  std::atomic<std::uint64_t> hopeless_dead_bytes_{all_hopeless};

  std::mutex run_mutex_;  // one at a time compacts; guards the next five
  bool is_reaching_bound_ = false;
  std::uint64_t uncommitted_bytes_ = 0;
  std::uint64_t seen_activity_ = 0;
  std::uint64_t tidied_inlined_bytes_ = 0;
  bool tidied_once_ = false;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  bool woken_ = true;  // what an earlier mount left
  CompactorStats stats_;
  std::thread thread_;
};

}  // namespace nacre::fs
