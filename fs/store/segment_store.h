// SPDX-License-Identifier: Apache-2.0
// The segment store: sealed records in append-only files, and the count of live bytes in each.
//
// A segment belongs to one write session, and no later session appends to it. The database holds
// each segment's committed size. When the store is opened, it cuts off bytes past that size (a torn
// tail) and removes segments that no commit named. The row of a session is durable before the
// session's first segment exists, so a segment of an unknown session means that db/ was put back to
// an older state (rolled_back).
//
// Thread-safe. Appended records become durable only when the committer has called stage() and
// sync() and has then committed the group.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fs/store/backup_snapshot.h"
#include "fs/store/plain_memory.h"
#include "gpu_engine/base/limits.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/format/inode_codec.h"
#include "metadata/format/rows.h"
#include "metadata/keys/keys.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

using metadata::ChunkIndex;
using metadata::InodeNumber;
using metadata::RecordLocation;
using metadata::RecordName;
using metadata::RecordVersion;
using metadata::SegmentNumber;

// Whether written bytes stay in the system's page cache, or go to the disk without it.
enum class PageCache : std::uint8_t { used, passed };

inline constexpr unsigned fresh_lane_count_max = 3;

struct SegmentStoreOptions {
  bool read_only = false;
  std::uint64_t segment_size_bytes = 64u << 20;  // past this size a new segment begins
  std::uint32_t chunk_size_bytes = chunk_size_bytes_default;
  engine::Codec codec = engine::Codec::lz77;
  int level = 0;
  engine::Padding padding = engine::Padding::none;
  // The number of segments that append() fills at the same time if several threads call it at once;
  // 1 to fresh_lane_count_max.
  unsigned fresh_lane_count = 1;
  // The number of bytes that one write session may seal, if that is less than the cipher suite
  // allows. At least 4 MiB and two records.
  std::uint64_t session_size_bytes_max = UINT64_MAX;
  // The number of versions that one write session may give out. The lower bits of a version count
  // the versions of its session. The count may pass this maximum a little, because threads that
  // find no version left have raised it already. So the maximum is below what these bits can count.
  std::uint64_t session_version_count_max =
      (1ull << metadata::record_version_session_shift) - (1u << 20);
};

// A record to be made. name.version comes from draw_versions(), or is 0, in which case append()
// draws a version.
struct SealRequest {
  RecordName name;
  // At most chunk_size_bytes. Bytes in plain_memory() are not copied.
  ByteView plain;
  std::optional<metadata::InodeCodec> codec = {};  // none: the volume's codec
};
struct SealedRecord {
  RecordLocation location;
  RecordVersion version;
};
struct SealedBatch {
  // In the order of the requests. Moved records come without a version.
  std::vector<SealedRecord> records;
  // Keeps the segments from being removed. The caller holds it until the rows that name the records
  // are in place.
  std::shared_ptr<const void> pin;
};

// Versions for records that append() is to make later.
struct DrawnVersions {
  std::vector<RecordVersion> versions;  // each higher than the one before
  // Kept until rows name the records, or until it is certain that no row will. A checkpoint relies
  // on it.
  std::shared_ptr<const void> mark;
};

// A record to be read. The size of out is exactly the plain size that the map names.
struct ReadRequest {
  RecordLocation location;
  RecordName name;  // compared with the record's identity
  // Bytes in clean_memory() are opened into place.
  MutableByteView out;
  Result<> result = {};  // corrupt, tampered, missing, io
  // Codec and epoch of a record that was opened.
  engine::Codec codec = engine::Codec::none;
  std::uint32_t epoch = 0;
};

// A segment that compaction is to empty. It is pinned, so it is not removed while this object
// exists.
struct Segment;
class GenuineRecords;
struct Victim {
  std::shared_ptr<Segment> segment;
  SegmentNumber number;
  std::uint64_t size = 0;
  std::shared_ptr<metadata::BackingFile> file;
};

// Memory for a batch of records that are read, sealed anew and appended without being copied: they
// are read into the input and appended from the output. One thread at a time uses it. It is
// destroyed before the store.
struct Work;
class MoveMemory {
 public:
  explicit MoveMemory(std::unique_ptr<Work> work);
  MoveMemory(MoveMemory&&) noexcept;
  ~MoveMemory();
  MutableByteView input();

 private:
  friend class SegmentStoreImpl;
  std::unique_ptr<Work> work_;
};

// Threads that move records in parallel. Each appends to a segment of its own.
inline constexpr unsigned move_lane_count_max = 12;

// Records that are about to be moved, in the order in which they were given.
struct PreparedMove {
  // What each record is. Errors: corrupt or tampered if it cannot be opened; out_of_memory; io.
  std::vector<Result<RecordName>> names;
  std::vector<ByteView> records;       // as they are to be appended
  std::shared_ptr<const void> memory;  // of records that were sealed anew
};

// Segments that were made under an older epoch.
struct OutdatedSegments {
  std::uint64_t count = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t immovable_count = 0;  // segments with a record that cannot be opened
};

// A segment is worth rewriting when at least this share of it is dead.
inline constexpr double reclaimable_share_min = 1.0 / 16;

// A segment is small if it is smaller than a full one's size divided by this.
inline constexpr std::uint64_t small_segment_divisor = 16;

// Counts of the records that are sealed with one codec.
struct CodecStats {
  std::uint64_t record_count = 0;
  std::uint64_t plain_bytes = 0;
  std::uint64_t stored_bytes = 0;
};
inline constexpr std::size_t codec_count = static_cast<std::size_t>(engine::Codec::lzw) + 1;

struct SegmentStats {
  std::uint64_t segment_count = 0;
  std::uint64_t stored_bytes = 0;  // of all segment files
  std::uint64_t live_bytes = 0;
  std::uint64_t empty_bytes = 0;  // of stored_bytes: removed by the next commit
  // Dead bytes in segments whose records compaction can move, as far as it knows.
  std::uint64_t movable_dead_bytes = 0;
  std::uint64_t reclaimable_bytes = 0;  // what rewriting all segments that are worth it would free
  std::uint64_t immovable_count = 0;    // segments with a record that cannot be opened
  std::uint64_t held_bytes = 0;         // dead bytes that a running backup copies
  std::uint64_t appended_records = 0;
  std::uint64_t appended_bytes = 0;
  std::uint64_t plain_bytes = 0;  // the plain size of the appended records
  std::uint64_t moved_records = 0;
  // The bytes that compaction appended again.
  std::uint64_t moved_bytes = 0;
  // The records appended since the mount, by engine::Codec. Content that cannot be packed counts
  // under none.
  std::array<CodecStats, codec_count> codecs = {};
};

// The size of a payload of append(): the size that the engine prefers, but small in comparison with
// a segment and with the bytes that a session may seal.
inline constexpr std::uint64_t payload_size_bytes_min = 2u << 20;
inline std::uint64_t flush_payload_size_bytes(const engine::Engine& engine,
                                              const SegmentStoreOptions& options) {
  return std::max(payload_size_bytes_min,
                  std::min({engine.payload_size_bytes(), options.segment_size_bytes / 4,
                            options.session_size_bytes_max / 2}));
}

class SegmentStore {
 public:
  // Recovers the segments, then (unless read_only) begins a write session. Another session follows
  // whenever the current one has sealed as much as its key may, or has given out all of its
  // versions. Errors: missing if a committed segment is gone or shorter than committed; corrupt;
  // rolled_back. If read_only, the store opens without such a segment, and only reads of its bytes
  // fail with missing.
  static Result<std::unique_ptr<SegmentStore>> open(
      std::shared_ptr<metadata::BackingDirectory> directory, metadata::Database& database,
      std::shared_ptr<const metadata::KeyTree> keys, engine::Engine& engine,
      const SegmentStoreOptions& options);
  virtual ~SegmentStore() = default;

  // Seals the records and appends them, a payload at a time: one payload is sealed while the one
  // before it is written. If it fails, none of the records counts.
  virtual Result<SealedBatch> append(std::span<const SealRequest> requests) = 0;
  // Memory for bytes that append() is to seal; it reads them in place. Destroyed with the store.
  virtual PlainMemory& plain_memory() = 0;
  // Memory for bytes that read() is to open; it opens them into place. Destroyed with the store.
  virtual PlainMemory& clean_memory() = 0;
  // The maximum size of the record of this many plain bytes.
  virtual std::uint64_t record_size_bound(std::size_t plain_size) const = 0;
  // A version for bytes that are not sealed into a record (inlined patches). If the session has
  // given out all of its versions, another one begins; errors are those of beginning it.
  virtual Result<RecordVersion> next_version() = 0;
  // Draws versions for records that append() makes later from content that exists already, for
  // example when patches of a chunk are merged. If rows are lost, salvage lays records over each
  // other in the order of their versions. So the versions are drawn while the content cannot
  // change; the next change of it then gets a higher version. Errors as for next_version().
  virtual Result<DrawnVersions> draw_versions(std::size_t count) = 0;
  // The ordinal of the current write session. Not for a store that is read_only.
  virtual std::uint64_t session_ordinal() = 0;
  // The current session as its ordinal and its salt.
  struct SessionName {
    std::uint64_t ordinal = 0;
    engine::SessionSalt salt = {};
  };
  virtual SessionName session_name() = 0;
  // Reads, checks and opens the records. Neighbours on disk are read together, and all are opened
  // in one payload. Each request gets its own result.
  virtual void read(std::span<ReadRequest> requests) = 0;

  // For compaction. Returns the closed segment with the best ratio of gain to cost (SegmentTable)
  // among those with a live share of at most live_share_max; none if there is no such segment.
  virtual Result<std::optional<Victim>> find_victim(double live_share_max) = 0;
  // Returns the smallest of the small closed segments, if there are more than count_max of them.
  // Backups and mounts close segments even if there is little in them.
  virtual Result<std::optional<Victim>> find_small_victim(std::size_t count_max) = 0;
  // Notes that compaction has read all of the segment. immovable: a record in it cannot be opened,
  // so the segment stays.
  virtual void note_compacted(const Victim& victim, bool immovable) = 0;
  // Closes the segments being filled, except those of checkpoints, so that compaction may take
  // them.
  virtual void close_segments() = 0;
  // Appends records of a checkpoint to segments that hold nothing else, packed for size. Each
  // record has up to chunk_size_bytes_max plain bytes, whatever the volume's chunk size is.
  virtual Result<SealedBatch> append_checkpoint(std::span<const SealRequest> requests) = 0;
  // Makes the next checkpoint begin a segment of its own.
  virtual void close_checkpoint() = 0;
  // Each record with a lower version is named by a row that was staged by the last stage() or
  // before it, or no row will ever name it.
  virtual RecordVersion settled_version() const = 0;
  // Opens records to learn what each of them is. Records of an older epoch come back sealed anew
  // under the current one, the others unchanged. The records have at most 16 MiB together.
  virtual PreparedMove prepare_move(std::span<const ByteView> records) = 0;
  // Memory for batches of about batch_bytes. A single larger record fits, too.
  virtual Result<MoveMemory> allocate_move_memory(std::size_t batch_bytes) = 0;
  // The same for records that lie in memory.input(). At least one of them must be of an older
  // epoch. The batch may have room for only the first of the records: the number of returned names
  // tells for how many. The returned records lie in memory until its next use.
  virtual PreparedMove prepare_move(std::span<const ByteView> records, MoveMemory& memory) = 0;
  // Like RecordKeys::authenticate().
  virtual Result<> authenticate(const engine::RecordHeader& header, ByteView record) const = 0;
  // Appends records that prepare_move() returned. They go to other segments than the records of
  // append(), so that records that have lived long stay together. Returns none if an epoch began in
  // the meantime; the records must then be prepared again. lane is below move_lane_count_max.
  virtual Result<std::optional<SealedBatch>> append_sealed(std::span<const ByteView> records,
                                                           unsigned lane, PageCache page_cache) = 0;

  // For a rotation of keys, after the keys got another current epoch. From now on records are
  // sealed and moved under that epoch only, and no new segment holds a record of an older one.
  virtual Result<> begin_epoch() = 0;
  // For a rotation to an epoch of format 2. begin_survey() closes the segments that are being
  // filled. From then on append() notes digests of its records, and the caller makes those of older
  // records with genuine_records(). end_survey() ends the survey if no switch of epochs has done
  // so. Reads and appends go on.
  virtual Result<> begin_survey() = 0;
  virtual void end_survey() = 0;
  virtual GenuineRecords& genuine_records() = 0;
  // Called after a survey, when its digests are durable. Holds up all appends, calls change, which
  // puts the keys of the next epoch in place, and begins a session of that epoch. Reads go on.
  virtual Result<> switch_epoch(std::uint32_t next, const std::function<Result<>()>& change) = 0;
  // The codec of new records.
  virtual void set_codec(engine::Codec codec, int level) = 0;
  virtual engine::Codec codec() const = 0;
  // Makes moves of records of older epochs compress them anew as well.
  virtual void recompress_old_epochs() = 0;
  // The oldest closed segment of an older epoch that can be emptied now.
  virtual Result<std::optional<Victim>> find_outdated() = 0;
  virtual OutdatedSegments outdated() const = 0;
  // Whether the segment was made since the store was opened. If so, each of its records was
  // verified when it was appended, and is of the segment's epoch.
  virtual bool vouches_for(SegmentNumber number) const = 0;
  // Grows with every append() and read(). A caller that waits for a quiet moment compares two
  // values.
  virtual std::uint64_t activity() const = 0;

  // Notes that a row now names this record, or no longer does. Under the operation lock.
  virtual void add_live(const RecordLocation& location) = 0;
  virtual void remove_live(const RecordLocation& location) = 0;

  // For the committer only.
  //   stage()      Puts rows of changed segments into the open group, under the exclusive operation
  //                lock. Returns true if an empty segment had to stay because it was still in use:
  //                another commit is due then.
  //   sync()       Brings everything that was appended before stage() to the medium.
  //   committed()  Called when the group is durable: removes segments without live bytes, and
  //                returns how many bytes they had.
  virtual bool stage() = 0;
  virtual Result<> sync() = 0;
  virtual std::uint64_t committed() = 0;

  // For a backup. Holds all segments that the last commit names. Called on the commit thread,
  // immediately after a commit and close_segments().
  virtual Result<SegmentHold> hold_committed() = 0;

  virtual SegmentStats stats() const = 0;
};

}  // namespace nacre::fs
