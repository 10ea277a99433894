// SPDX-License-Identifier: Apache-2.0
// The segments of a volume: their files, how far each is written, and how much of it is live.
//
// Thread-safe. A Segment that is pinned (its shared_ptr is also held outside the table) is never
// removed.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fs/store/backup_snapshot.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

struct Segment {
  metadata::SegmentNumber number;
  std::uint32_t epoch = 0;
  engine::SessionSalt salt = {};
  bool made_here = false;              // made since the store was opened; never changes
  std::atomic<std::uint64_t> size{0};  // bytes appended; only the appender changes it
  // The same number, but set before unsynced is set. So a sync that clears unsynced covers all of
  // it.
  std::atomic<std::uint64_t> written_size{0};
  std::atomic<std::int64_t> live_bytes{0};
  std::atomic<bool> changed{false};  // its row must be staged
  std::atomic<bool> unsynced{false};
  std::atomic<bool> open_for_append{false};
  // Compaction has read the segment and could not empty it, since a record in it cannot be opened.
  std::atomic<bool> immovable{false};
  // The live bytes after the last try of compaction. It tries again when that number has changed.
  std::atomic<std::int64_t> live_bytes_left{-1};
  // The number of backups that copy the segment. While there are any, the segment stays, and
  // compacting it would free nothing.
  std::atomic<std::uint32_t> hold_count{0};

 private:
  friend class SegmentTable;
  Mutex mutex_;
  std::shared_ptr<metadata::BackingFile> file_ NACRE_GUARDED_BY(mutex_);
  // Used by the thread that commits: the size that the row says, and the size that is certainly on
  // the medium.
  std::uint64_t staged_size_ = 0, synced_size_ = 0;
};
using SharedSegment = std::shared_ptr<Segment>;

// Returns a path such as "segments/000000000001.seg".
std::string segment_path(metadata::SegmentNumber number);

// nacre backup writes a segment as "segments/000000000001.seg.new" and renames it once the copy's
// database names it. Until then this name counts, if the segment is of the session that its row
// says. docs/FORMAT.md, "Backup".
inline constexpr std::string_view arriving_suffix = ".seg.new";
// A segment that nacre backup is still writing.
inline constexpr std::string_view unfinished_suffix = ".seg.part";
std::string arriving_segment_path(metadata::SegmentNumber number);
// The path at which the segment of that row is, or should be. That is the path of its own name,
// unless the file there does not fit the row (session and size) and the arriving one does. The
// header alone proves nothing, since it is in the clear and can be copied.
Result<std::string> find_segment(metadata::BackingDirectory& directory,
                                 metadata::SegmentNumber number, const metadata::SegmentRow& row);

struct OutdatedSegments;  // segment_store.h

class SegmentTable {
 public:
  SegmentTable(std::shared_ptr<metadata::BackingDirectory> directory, metadata::Database& database)
      : directory_(std::move(directory)), database_(database) {}

  // Reads the rows and compares them with the files. Cuts torn tails and removes files that no
  // commit named, or fails (see segment_store.h). Writes nothing if read_only.
  Result<> recover(const engine::VolumeId& volume_id, bool read_only) NACRE_EXCLUDES(mutex_);

  // In the order of their numbers.
  std::vector<SharedSegment> all() const NACRE_EXCLUDES(mutex_);
  // Error: missing if the table does not know it.
  Result<SharedSegment> find(metadata::SegmentNumber number) const NACRE_EXCLUDES(mutex_);
  Result<std::shared_ptr<metadata::BackingFile>> file(Segment& segment);
  // Makes a new file with its header, open for append.
  Result<SharedSegment> create(const engine::VolumeId& volume_id, std::uint32_t epoch,
                               const engine::SessionSalt& salt)
      NACRE_EXCLUDES(create_mutex_, mutex_);
  // Notes that nothing is appended to the segment from now on.
  void close_for_append(const SharedSegment& segment);

  void add_live(const metadata::RecordLocation& location, std::int64_t sign) NACRE_EXCLUDES(mutex_);

  // Among the segments that compaction may rewrite, returns the one with the best ratio of gain to
  // cost, in which older segments count more. Such segments are closed, in use by no thread,
  // neither empty nor tried in vain, and have a live share of at most live_share_max. Null if there
  // is none.
  SharedSegment find_victim(double live_share_max) const NACRE_EXCLUDES(mutex_);

  // The smallest of the closed segments below size_max that compaction may rewrite, if there are
  // more than count_max of them; otherwise null.
  SharedSegment find_small_victim(std::uint64_t size_max, std::size_t count_max) const
      NACRE_EXCLUDES(mutex_);
  // The oldest of the segments of older epochs that are closed, in use by no thread, not empty, and
  // not known to hold a record that cannot be opened. Null if there is none.
  SharedSegment find_outdated(std::uint32_t epoch) const NACRE_EXCLUDES(mutex_);
  OutdatedSegments outdated(std::uint32_t epoch) const NACRE_EXCLUDES(mutex_);

  // See SegmentStore.
  bool stage() NACRE_EXCLUDES(mutex_);
  Result<> sync() NACRE_EXCLUDES(mutex_);
  std::uint64_t committed();

  // Holds all segments that the database names, with their committed sizes. Called only while no
  // commit is under way.
  Result<SegmentHold> hold_committed();

  struct Totals {
    std::uint64_t count = 0, stored_bytes = 0, live_bytes = 0;
    // See SegmentStats.
    std::uint64_t empty_bytes = 0, movable_dead_bytes = 0;
    // What is worth rewriting: segments with a live share of at most live_share_max.
    std::uint64_t reclaimable_bytes = 0;
    std::uint64_t immovable_count = 0;
    std::uint64_t held_bytes = 0;
  };
  Totals totals(double live_share_max) const NACRE_EXCLUDES(mutex_);

 private:
  Result<> recover_known(const std::string& path, Segment& segment, std::uint64_t committed_size,
                         bool read_only);
  Result<> recover_unknown(const std::string& path, const engine::VolumeId& volume_id,
                           bool read_only) NACRE_REQUIRES(mutex_);

  Result<> take_arriving(bool read_only);

  // Adds the segment to the open files, and closes the oldest of them.
  void remember_open(const SharedSegment& segment) NACRE_EXCLUDES(open_mutex_);

  static constexpr std::size_t open_file_count_max = 512;

  std::shared_ptr<metadata::BackingDirectory> directory_;
  metadata::Database& database_;
  Mutex create_mutex_;         // one segment is created at a time; before mutex_
  mutable SharedMutex mutex_;  // guards the next three
  std::map<metadata::SegmentNumber, SharedSegment> segments_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t next_number_ NACRE_GUARDED_BY(mutex_) = 1;
  // The value of next_number_ in the table system.
  std::uint64_t staged_next_number_ NACRE_GUARDED_BY(mutex_) = 1;
  std::set<metadata::SegmentNumber>
      arriving_;  // in a read-only mount: segments whose files still have the arriving name
  std::atomic<bool> folder_unsynced_{false};
  // Segments whose rows are erased in the group being committed.
  std::vector<SharedSegment> doomed_;
  // The count of calls of stage(), and that count at the last sync(). They check the order of a
  // commit.
  std::uint64_t stage_count_ = 0, synced_stage_count_ = 0;

  Mutex open_mutex_;
  // A ring: the oldest is closed first.
  std::vector<std::weak_ptr<Segment>> open_ NACRE_GUARDED_BY(open_mutex_);
  std::size_t open_cursor_ NACRE_GUARDED_BY(open_mutex_) = 0;
};

}  // namespace nacre::fs
