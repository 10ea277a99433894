// SPDX-License-Identifier: Apache-2.0
// Empties segments of older epochs, several at a time. A lane reads a batch, has the engine seal it
// anew, appends it to a segment of its own and changes the rows. Meanwhile other lanes do the same
// with other segments, and a commit makes earlier batches durable. So the disk, the engine and the
// locks of rows are busy at the same time. Each lane keeps the order of compaction.h: a row is
// changed after its record was appended, and the committer makes it durable after the record.
//
// During foreground work one lane goes on with small batches at the background's rate, and the
// other lanes pause.
//
// Bounds: the number of lanes, each with two arenas; moved bytes that wait for a commit; and the
// live bytes of the segments being emptied, which must fit into the free space, or fewer segments
// are taken.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fs/space/compaction.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

struct RekeyOrder {
  // The rate of bytes read and written. 0: without a limit while nothing else reads or writes;
  // otherwise the rate that background compaction has when dead bytes just reach their bound.
  std::uint64_t rate_bytes_per_second = 0;
  bool at_full_speed = false;  // without any pause, even during foreground work
  // Called after each piece of work, on any lane. Its error ends the call.
  std::function<Result<>()> go_on;
  std::function<void()> progress = {};  // called after pieces of work, on the calling thread
  NamedPlaces named_places = {};  // asked for a segment that is full of what looks like records
};
enum class RekeyStep : std::uint8_t {
  moved,    // there may be more to do
  waiting,  // the rest is in use; a commit or the end of a backup frees it
  done,     // all live records that can be opened are of the current epoch
};
struct RekeyReport {
  RekeyStep step = RekeyStep::done;
  std::uint64_t segment_count = 0;  // segments that were read to their end
};

struct RekeyerOptions {
  std::uint64_t rate_bytes_per_second = 32u << 20;  // during foreground work
  // The number of moved bytes after which a commit begins, for each segment that a lane works on.
  // As many bytes may be moved while the commit is under way; then lanes wait for it.
  std::uint64_t uncommitted_bytes_max = 64u << 20;
  std::size_t batch_bytes =
      4u << 20;             // while nothing else uses the volume; the size that the engine prefers
  unsigned lane_count = 0;  // the maximum; 0: the number of cores
  Ballast* ballast = nullptr;  // borrowed; null: only the disk tells when it is full
};

// Only one thread at a time may call run(). Any thread may call stop().
class Rekeyer {
 public:
  // Everything passed by reference outlives it.
  Rekeyer(SegmentStore& store, const ChunkMap& map, Committer& committer, RowKeeper& keeper,
          const RekeyerOptions& options);

  // Works for some seconds, and then to the end of the segments that lanes work on. Errors:
  // cancelled after stop(); those of order.go_on, of compact_segment() and of commits.
  Result<RekeyReport> run(const RekeyOrder& order) NACRE_EXCLUDES(mutex_);
  void stop() NACRE_EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  struct Lane {
    Mover mover;
    std::optional<MoveMemory> memory;
    bool has_left = false;  // it has paused in the middle of its segment
  };
  struct Taken {
    Victim victim;
    std::uint64_t live_bytes;  // live bytes of the segment when it was taken
  };

  unsigned lanes_for(const RekeyOrder& order) NACRE_EXCLUDES(mutex_);
  void run_lane(Lane& lane, const RekeyOrder& order) NACRE_EXCLUDES(mutex_);
  Result<> empty_segments(Lane& lane, const RekeyOrder& order) NACRE_EXCLUDES(mutex_);
  Result<> empty_segment(Lane& lane, const Taken& taken, const RekeyOrder& order);
  Result<std::optional<Taken>> take_segment() NACRE_EXCLUDES(take_mutex_, mutex_);
  Result<> pause(Lane& lane, std::uint64_t bytes, const RekeyOrder& order) NACRE_EXCLUDES(mutex_);
  bool is_alone_locked(Clock::time_point now) NACRE_REQUIRES(mutex_);
  Result<> note_moved(std::uint64_t bytes) NACRE_EXCLUDES(mutex_);
  Result<> finish_commit() NACRE_EXCLUDES(mutex_);  // waits for the commit that is under way
  Result<> commit() NACRE_EXCLUDES(mutex_);

  SegmentStore& store_;
  const ChunkMap& map_;
  Committer& committer_;
  RowKeeper& keeper_;
  const RekeyerOptions options_;
  const unsigned lane_count_max_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // used by run(), and each by its own thread

  Mutex take_mutex_;  // held while a segment is chosen; before mutex_

  Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  // No segment is begun after this time.
  Clock::time_point end_ NACRE_GUARDED_BY(mutex_){};
  // Of the first lane that failed.
  Result<> failure_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t emptied_count_ NACRE_GUARDED_BY(mutex_) = 0;
  // Segments that are being emptied.
  std::uint64_t in_hand_count_ NACRE_GUARDED_BY(mutex_) = 0;
  // Live bytes in these.
  std::uint64_t in_hand_bytes_ NACRE_GUARDED_BY(mutex_) = 0;
  std::uint64_t seen_activity_ NACRE_GUARDED_BY(mutex_) = 0;
  Clock::time_point alone_from_ NACRE_GUARDED_BY(mutex_){};
  // When the rate allows the next piece.
  Clock::time_point next_piece_ NACRE_GUARDED_BY(mutex_){};
  std::uint64_t uncommitted_bytes_ NACRE_GUARDED_BY(mutex_) = 0;
  bool is_committing_ NACRE_GUARDED_BY(mutex_) = false;
  Result<> commit_failure_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
