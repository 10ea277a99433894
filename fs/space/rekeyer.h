// SPDX-License-Identifier: Apache-2.0
// Empties segments of older epochs, several side by side: a lane reads a batch, has the engine seal
// it anew, appends it to a segment of its own and switches the rows, while other lanes do the same
// with other segments and a commit makes durable what is behind them. So the disk, the engine and
// the rows' locks are busy at the same time, and each lane keeps the order that compaction.h
// promises: a row is switched after its record was appended, and durable after it by the committer.
//
// Beside foreground work one lane goes on with small batches at the background's rate; the others
// leave their segments as they are then.
//
// Bounds: lanes, each with two arenas; moved bytes that wait for a commit; and what is live in the
// segments being emptied must fit the free space, or fewer of them are taken.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "fs/space/compaction.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"

namespace nacre::fs {

struct RekeyOrder {
  // Read and written together; 0: as for the background's compaction at its bound, and without a
  // limit while nobody else reads or writes.
  std::uint64_t rate_bytes_per_second = 0;
  bool at_full_speed = false;  // without any pause, whoever else is there
  // Asked after each piece of work, on any lane; its error ends the call.
  std::function<Result<>()> go_on;
  std::function<void()> progress = {};  // after pieces of work, on the calling thread
};
enum class RekeyStep : std::uint8_t {
  moved,    // there may be more to do
  waiting,  // what is left is in somebody's hands: a commit, or the end of a backup, frees it
  done,     // all live records are of the current epoch, but for those that cannot be opened
};
struct RekeyReport {
  RekeyStep step = RekeyStep::done;
  std::uint64_t segment_count = 0;  // read through
};

struct RekeyerOptions {
  std::uint64_t rate_bytes_per_second = 32u << 20;  // beside foreground work
  // Moved bytes after which a commit begins, for each segment that a lane has in hand. As many
  // again may come together while it is under way; then lanes wait for it.
  std::uint64_t uncommitted_bytes_max = 64u << 20;
  std::size_t batch_bytes = 4u << 20;  // when nobody else is there: as the engine likes it
  unsigned lane_count = 0;             // at most; 0: as the machine has cores
  Ballast* ballast = nullptr;          // borrowed; none: the disk alone says when it is full
};

// One thread at a time calls run(); stop() is for any thread.
class Rekeyer {
 public:
  // Everything passed by reference outlives it.
  Rekeyer(SegmentStore& store, const ChunkMap& map, Committer& committer, RowKeeper& keeper,
          const RekeyerOptions& options);

  // Works for some seconds at most, and to the end of the segments in hand. cancelled after stop();
  // else the errors of order.go_on, of compact_segment() and of commits.
  Result<RekeyReport> run(const RekeyOrder& order);
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Lane {
    Mover mover;
    std::optional<MoveMemory> memory;
    bool has_left = false;  // its segment, in the middle
  };
  struct Taken {
    Victim victim;
    std::uint64_t live_bytes;  // in it when it was taken
  };

  unsigned lanes_for(const RekeyOrder& order);
  void run_lane(Lane& lane, const RekeyOrder& order);
  Result<> empty_segments(Lane& lane, const RekeyOrder& order);
  Result<> empty_segment(Lane& lane, const Taken& taken, const RekeyOrder& order);
  Result<std::optional<Taken>> take_segment();
  Result<> pause(Lane& lane, std::uint64_t bytes, const RekeyOrder& order);
  bool is_alone_locked(Clock::time_point now);
  Result<> note_moved(std::uint64_t bytes);
  Result<> finish_commit();  // waits for the one under way
  Result<> commit();

  SegmentStore& store_;
  const ChunkMap& map_;
  Committer& committer_;
  RowKeeper& keeper_;
  const RekeyerOptions options_;
  const unsigned lane_count_max_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // of run() and, one each, of their threads

  std::mutex take_mutex_;  // one at a time chooses a segment; before mutex_

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stopping_ = false;
  Clock::time_point end_{};  // no new segment after it
  Result<> failure_;         // of the first lane that failed
  std::uint64_t emptied_count_ = 0;
  std::uint64_t in_hand_count_ = 0, in_hand_bytes_ = 0;  // segments being emptied, live in them
  std::uint64_t seen_activity_ = 0;
  Clock::time_point alone_from_{};
  Clock::time_point next_piece_{};  // when the rate allows it
  std::uint64_t uncommitted_bytes_ = 0;
  bool is_committing_ = false;
  Result<> commit_failure_;
};

}  // namespace nacre::fs
