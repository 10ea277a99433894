// SPDX-License-Identifier: Apache-2.0
// The segment store: sealed records in append-only files, and the count of what is live in each.
//
// A segment belongs to one write session and is never appended to by a later one. The database
// holds each segment's committed size; opening the store cuts off what lies beyond (a torn tail)
// and removes segments that no commit named. Before a session's first segment exists, the session's
// row is durable: a segment of an unknown session means that db/ was put back (rolled_back).
//
// Thread-safe. Nothing here is durable until the committer has called stage(), sync() and then
// committed the group.
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

// Whether what is written is to be found in the system's cache afterwards.
enum class PageCache : std::uint8_t { used, passed };

inline constexpr unsigned fresh_lane_count_max = 3;

struct SegmentStoreOptions {
  bool read_only = false;
  std::uint64_t segment_size_bytes = 64u << 20;  // a new segment begins past this
  std::uint32_t chunk_size_bytes = chunk_size_bytes_default;
  engine::Codec codec = engine::Codec::lz77;
  int level = 0;
  engine::Padding padding = engine::Padding::none;
  // Segments that append() fills side by side where several call it at once; 1 to
  // fresh_lane_count_max.
  unsigned fresh_lane_count = 1;
  // What one write session may seal, where that is less than the cipher suite allows. At least 4
  // MiB and two records.
  std::uint64_t session_size_bytes_max = UINT64_MAX;
  // Versions that one write session may give out, and never as many as its ordinal leaves room for:
  // threads that find none left count on for a moment.
  std::uint64_t session_version_count_max =
      (1ull << metadata::record_version_session_shift) - (1u << 20);
};

// A record to be made. name.version is one of draw_versions(), or 0: append() draws it.
struct SealRequest {
  RecordName name;
  ByteView plain;  // at most chunk_size_bytes; in plain_memory() it is not copied
  std::optional<metadata::InodeCodec> codec = {};  // none: the volume's
};
struct SealedRecord {
  RecordLocation location;
  RecordVersion version;
};
struct SealedBatch {
  std::vector<SealedRecord> records;  // in the order of the requests; moved ones without version
  // Keeps the segments from being removed until the rows that name the records are in place.
  std::shared_ptr<const void> pin;
};

// Versions for records that append() is to make later.
struct DrawnVersions {
  std::vector<RecordVersion> versions;  // each higher than the one before
  // Kept until rows name the records, or nobody will: a checkpoint counts on it.
  std::shared_ptr<const void> mark;
};

// A record to be read. out has exactly the plain size that the map names.
struct ReadRequest {
  RecordLocation location;
  RecordName name;       // compared with the record's identity
  MutableByteView out;   // in clean_memory() it is opened into place
  Result<> result = {};  // corrupt, tampered, missing, io
  // Of a record that was opened.
  engine::Codec codec = engine::Codec::none;
  std::uint32_t epoch = 0;
};

// A segment that compaction is to empty. Pinned: it is not removed while this exists.
struct Segment;
struct Victim {
  std::shared_ptr<Segment> segment;
  SegmentNumber number;
  std::uint64_t size = 0;
  std::shared_ptr<metadata::BackingFile> file;
};

// Memory for a batch of records that are read, sealed anew and appended without being copied: read
// into input, appended from output. One thread at a time. Goes before the store.
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

// Movers side by side: each appends to a segment of its own.
inline constexpr unsigned move_lane_count_max = 12;

// Records that are about to be moved, in the order in which they were given.
struct PreparedMove {
  // What each of them is. corrupt, tampered: it cannot be opened; out_of_memory, io.
  std::vector<Result<RecordName>> names;
  std::vector<ByteView> records;       // as they are to be appended
  std::shared_ptr<const void> memory;  // of those that were sealed anew
};

// Segments that were made under an older epoch.
struct OutdatedSegments {
  std::uint64_t count = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t immovable_count = 0;  // they hold a record that cannot be opened
};

// A segment is worth rewriting when at least this share of it is dead.
inline constexpr double reclaimable_share_min = 1.0 / 16;

// A segment is small below a full one's size divided by this.
inline constexpr std::uint64_t small_segment_divisor = 16;

// What is sealed with a codec.
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
  std::uint64_t empty_bytes = 0;  // of stored: goes with the next commit
  // Dead bytes beside records that compaction can move, as far as it knows.
  std::uint64_t movable_dead_bytes = 0;
  std::uint64_t reclaimable_bytes = 0;  // what rewriting all that is worth it would free
  std::uint64_t immovable_count = 0;    // segments that hold a record which cannot be opened
  std::uint64_t held_bytes = 0;         // dead, but a backup under way copies them
  std::uint64_t appended_records = 0;
  std::uint64_t appended_bytes = 0;
  std::uint64_t plain_bytes = 0;  // that went into the appended records
  std::uint64_t moved_records = 0;
  std::uint64_t moved_bytes = 0;  // appended once more by compaction
  // Of the records appended since the mount, by engine::Codec; what cannot be packed is of none.
  std::array<CodecStats, codec_count> codecs = {};
};

// What append() seals in one payload: as the engine likes it, but little beside a segment and what
// a session may seal.
inline constexpr std::uint64_t payload_size_bytes_min = 2u << 20;
inline std::uint64_t flush_payload_size_bytes(const engine::Engine& engine,
                                              const SegmentStoreOptions& options) {
  return std::max(payload_size_bytes_min,
                  std::min({engine.payload_size_bytes(), options.segment_size_bytes / 4,
                            options.session_size_bytes_max / 2}));
}

class SegmentStore {
 public:
  // Recovers, then (unless read_only) begins a write session; another one follows whenever that has
  // sealed as much as its key may, or has given out all of its versions.
  // missing when a committed segment is gone or shorter than committed (read_only: then reading
  // what was in it is, not the rest); corrupt, rolled_back.
  static Result<std::unique_ptr<SegmentStore>> open(
      std::shared_ptr<metadata::BackingDirectory> directory, metadata::Database& database,
      std::shared_ptr<const metadata::KeyTree> keys, engine::Engine& engine,
      const SegmentStoreOptions& options);
  virtual ~SegmentStore() = default;

  // Seals the records and appends them, a payload at a time: one is sealed while the one before it
  // is written. On an error none of them counts.
  virtual Result<SealedBatch> append(std::span<const SealRequest> requests) = 0;
  // For bytes that append() is to seal: those are read where they lie. Goes with the store.
  virtual PlainMemory& plain_memory() = 0;
  // For bytes that read() is to open: they come to where they are to lie. Goes with the store.
  virtual PlainMemory& clean_memory() = 0;
  // A version for bytes that are not sealed into a record (inlined patches). Where the session has
  // given out all of its versions another one begins; the errors of that.
  virtual Result<RecordVersion> next_version() = 0;
  // Versions for records of content that was there before, as when layers of a chunk are merged.
  // Without rows, records are laid over each other by their versions; so these are drawn when the
  // content is fixed, and whatever changes it afterwards gets a higher one. Errors as above.
  virtual Result<DrawnVersions> draw_versions(std::size_t count) = 0;
  // Of the write session that goes on. Not of a store that is read_only.
  virtual std::uint64_t session_ordinal() = 0;
  // The same session as its ordinal and its salt.
  struct SessionName {
    std::uint64_t ordinal = 0;
    engine::SessionSalt salt = {};
  };
  virtual SessionName session_name() = 0;
  // Reads, checks and opens the records; neighbours on disk are read together, all are opened in
  // one payload. Each request carries its own result.
  virtual void read(std::span<ReadRequest> requests) = 0;

  // For compaction. The closed segment that gives most for what it costs (SegmentTable), of those
  // with a live share of live_share_max or less; none when there is no such segment.
  virtual Result<std::optional<Victim>> find_victim(double live_share_max) = 0;
  // The smallest of the small closed segments, where there are more than count_max of them: backups
  // and mounts close segments however little is in them.
  virtual Result<std::optional<Victim>> find_small_victim(std::size_t count_max) = 0;
  // Compaction has read all of it. immovable: a record in it cannot be opened, so it stays.
  virtual void note_compacted(const Victim& victim, bool immovable) = 0;
  // Closes the segments being filled, so that compaction may have them; those without records stay.
  virtual void close_segments() = 0;
  // Records of a checkpoint: apart from all others, in segments that hold nothing else, packed for
  // size. Up to chunk_size_bytes_max plain bytes each, whatever the volume's chunks have.
  virtual Result<SealedBatch> append_checkpoint(std::span<const SealRequest> requests) = 0;
  // The next one begins a segment of its own.
  virtual void close_checkpoint() = 0;
  // As of the last stage(): every record of a lower version is named by rows that were staged until
  // then, or never will be.
  virtual RecordVersion settled_version() const = 0;
  // Opens records to learn what each of them is. Those of an older epoch come back sealed anew
  // under the current one, others as they are. At most 16 MiB together.
  virtual PreparedMove prepare_move(std::span<const ByteView> records) = 0;
  // Memory for batches of about batch_bytes of records, and for one record whatever its size.
  virtual Result<MoveMemory> allocate_move_memory(std::size_t batch_bytes) = 0;
  // The same for records that lie in the memory's input, of which at least one is of an older
  // epoch. Fewer names than records: the rest has no room in this batch. What comes back lies in
  // the memory until its next use.
  virtual PreparedMove prepare_move(std::span<const ByteView> records, MoveMemory& memory) = 0;
  // RecordKeys::authenticate().
  virtual Result<> authenticate(const engine::RecordHeader& header, ByteView record) const = 0;
  // Appends records that prepare_move() gave, apart from those that append() makes: what has lived
  // long stays together. None when an epoch began since: prepare them once more. lane: below
  // move_lane_count_max.
  virtual Result<std::optional<SealedBatch>> append_sealed(std::span<const ByteView> records,
                                                           unsigned lane, PageCache page_cache) = 0;

  // For a rotation of keys. The keys have another current epoch: whatever is sealed or moved from
  // now on is under it, and no segment that is made holds a record of an older one.
  virtual Result<> begin_epoch() = 0;
  // To an epoch of format 2: notes which records are genuine (genuine_records.h), then, while
  // nobody can append, has change bring the keys of the next epoch, and begins a session of it.
  // go_on is asked before that; its error ends the call. Reads go on.
  virtual Result<> switch_epoch(std::uint32_t next, const std::function<Result<>()>& go_on,
                                const std::function<Result<>()>& change) = 0;
  virtual void set_codec(engine::Codec codec, int level) = 0;  // of new records
  virtual engine::Codec codec() const = 0;
  // Records of older epochs are also compressed anew when they are moved.
  virtual void recompress_old_epochs() = 0;
  // The oldest closed segment of an older epoch that can be emptied now.
  virtual Result<std::optional<Victim>> find_outdated() = 0;
  virtual OutdatedSegments outdated() const = 0;
  // Whether the segment was made since the store was opened: each of its records was looked at when
  // it was appended, and is of the segment's epoch.
  virtual bool vouches_for(SegmentNumber number) const = 0;
  // Grows with every append() and read(): who waits for a quiet moment compares two values.
  virtual std::uint64_t activity() const = 0;

  // A row now names this record, or no longer does. Under the operation lock.
  virtual void add_live(const RecordLocation& location) = 0;
  virtual void remove_live(const RecordLocation& location) = 0;

  // For the committer alone. stage(): rows of changed segments go to the open group, under the
  // exclusive operation lock; true when an empty segment had to stay, because somebody still had
  // it in hand: another commit is due. sync(): everything appended before stage() is on the medium.
  // committed(): the group is durable; segments without live bytes are removed.
  virtual bool stage() = 0;
  virtual Result<> sync() = 0;
  virtual void committed() = 0;

  // For a backup; on the commit thread, right behind a commit and close_segments(): holds all that
  // the commit names.
  virtual Result<SegmentHold> hold_committed() = 0;

  virtual SegmentStats stats() const = 0;
};

}  // namespace nacre::fs
