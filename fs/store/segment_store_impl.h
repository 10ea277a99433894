// SPDX-License-Identifier: Apache-2.0
// The implementation of the segment store. segment_store.cpp has sessions, sealing and appending;
// segment_move.cpp has what compaction and rotation move.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "fs/store/genuine_records.h"
#include "fs/store/record_reader.h"
#include "fs/store/segment_store.h"
#include "fs/store/segment_table.h"
#include "fs/store/versions_in_hand.h"
#include "fs/store/work_pool.h"
#include "fs/store/write_session.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// Records of older epochs are read and moved for as long as a rotation runs, so there is room for
// records of the suite that takes most.
inline constexpr auto widest_suite = engine::CipherSuite::aes_256_cbc;

class SegmentStoreImpl final : public SegmentStore {
 public:
  SegmentStoreImpl(std::shared_ptr<metadata::BackingDirectory> directory,
                   metadata::Database& database, std::shared_ptr<const metadata::KeyTree> keys,
                   engine::Engine& engine, const SegmentStoreOptions& options)
      : database_(database),
        keys_(std::move(keys)),
        record_keys_(database, keys_),
        engine_(engine),
        options_(options),
        table_(std::move(directory), database),
        genuine_(table_, database, record_keys_),
        work_(engine, keys_->volume_id(), work_size_for(payload_size_bytes_min),
              spare_work_count_max()),
        large_work_(engine, keys_->volume_id(),
                    work_size_for(flush_payload_size_bytes(engine, options)),
                    spare_large_work_count_max),
        plain_memory_(engine, options.chunk_size_bytes),
        clean_memory_(engine, options.chunk_size_bytes, 1),
        reader_(table_, record_keys_, engine, work_, clean_memory_, record_size_bytes_max()),
        codec_(options.codec),
        level_(options.level) {}

  Result<> recover() {
    NACRE_TRY(table_.recover(keys_->volume_id(), options_.read_only));
    if (options_.read_only) return {};
    // This commit takes along what the mount put into the group before.
    if (database_.freeze()) NACRE_TRY(database_.commit_frozen(true));
    LockGuard lock(session_mutex_);
    return begin_session();
  }

  Result<SealedBatch> append(std::span<const SealRequest> requests) override;
  PlainMemory& plain_memory() override { return plain_memory_; }
  PlainMemory& clean_memory() override { return clean_memory_; }
  std::uint64_t record_size_bound(std::size_t plain_size) const override {
    return bound_of(plain_size);
  }
  Result<RecordVersion> next_version() override {
    while (true) {
      // The end is read before the count, and begin_session() changes them in the opposite order.
      // So a version below an end was counted in the session of that end.
      const std::uint64_t end = version_end_;
      const std::uint64_t version = next_version_++;
      if (version < end) return RecordVersion{version};
      NACRE_TRY(renew_versions());
    }
  }
  Result<DrawnVersions> draw_versions(std::size_t count) override;
  std::uint64_t session_ordinal() override {
    LockGuard lock(session_mutex_);
    return session_->ordinal;
  }
  SessionName session_name() override {
    LockGuard lock(session_mutex_);
    return {.ordinal = session_->ordinal, .salt = session_->salt};
  }
  void read(std::span<ReadRequest> requests) override {
    activity_.fetch_add(1, std::memory_order_relaxed);
    reader_.read(requests);
  }
  Result<SealedBatch> append_checkpoint(std::span<const SealRequest> requests) override;
  void close_checkpoint() override;
  RecordVersion settled_version() const override { return RecordVersion{settled_version_}; }

  Result<std::optional<Victim>> find_victim(double live_share_max) override {
    return victim_of(table_.find_victim(live_share_max));
  }
  Result<std::optional<Victim>> find_small_victim(std::size_t count_max) override {
    return victim_of(
        table_.find_small_victim(options_.segment_size_bytes / small_segment_divisor, count_max));
  }
  void note_compacted(const Victim& victim, bool immovable) override;
  void close_segments() override;
  PreparedMove prepare_move(std::span<const ByteView> records) override;
  Result<MoveMemory> allocate_move_memory(std::size_t batch_bytes) override;
  PreparedMove prepare_move(std::span<const ByteView> records, MoveMemory& memory) override;
  Result<std::optional<SealedBatch>> append_sealed(std::span<const ByteView> records, unsigned lane,
                                                   PageCache page_cache) override;
  Result<> authenticate(const engine::RecordHeader& header, ByteView record) const override {
    RecordKeys::Opener opener;
    return record_keys_.authenticate(header, record, opener);
  }
  Result<> begin_epoch() override;
  Result<> begin_survey() override;
  void end_survey() override;
  GenuineRecords& genuine_records() override { return genuine_; }
  Result<> switch_epoch(std::uint32_t next, const std::function<Result<>()>& change) override;
  void set_codec(engine::Codec codec, int level) override;
  engine::Codec codec() const override { return codec_; }
  void recompress_old_epochs() override { recompress_ = true; }
  Result<std::optional<Victim>> find_outdated() override;
  OutdatedSegments outdated() const override;
  bool vouches_for(SegmentNumber number) const override {
    const auto segment = table_.find(number);
    return segment && (*segment)->made_here;
  }
  std::uint64_t activity() const override { return activity_.load(std::memory_order_relaxed); }

  void add_live(const RecordLocation& location) override { table_.add_live(location, +1); }
  void remove_live(const RecordLocation& location) override { table_.add_live(location, -1); }
  bool stage() override {
    settled_version_ = in_hand_.lowest(next_version_);
    return table_.stage();
  }
  Result<> sync() override { return table_.sync(); }
  std::uint64_t committed() override { return table_.committed(); }
  Result<SegmentHold> hold_committed() override { return table_.hold_committed(); }

  SegmentStats stats() const override {
    const auto totals = table_.totals(1 - reclaimable_share_min);
    std::array<CodecStats, codec_count> codecs;
    for (std::size_t i = 0; i < codec_count; ++i) {
      codecs[i] = {codecs_[i].record_count, codecs_[i].plain_bytes, codecs_[i].stored_bytes};
    }
    return SegmentStats{.segment_count = totals.count,
                        .stored_bytes = totals.stored_bytes,
                        .live_bytes = totals.live_bytes,
                        .empty_bytes = totals.empty_bytes,
                        .movable_dead_bytes = totals.movable_dead_bytes,
                        .reclaimable_bytes = totals.reclaimable_bytes,
                        .immovable_count = totals.immovable_count,
                        .held_bytes = totals.held_bytes,
                        .appended_records = appended_records_,
                        .appended_bytes = appended_bytes_,
                        .plain_bytes = plain_bytes_,
                        .moved_records = moved_records_,
                        .moved_bytes = moved_bytes_,
                        .codecs = codecs};
  }

 private:
  // Visits the appenders in the order in which their mutexes are taken.
  template <typename Visit>
  void each_appender(Visit visit) {
    for (Appender& appender : fresh_)
      visit(appender);
    for (Appender& appender : moved_)
      visit(appender);
    visit(checkpoint_);
  }

  // About as many as there are concurrent reads. Each takes only the pages that were used.
  static std::size_t spare_work_count_max() {
    return std::clamp(std::thread::hardware_concurrency(), 6u, 16u);
  }
  // Larger ones are for flushes. Each flush takes two: one is sealed while the other is written.
  static constexpr std::size_t spare_large_work_count_max = 4;
  static constexpr std::uint64_t writeback_step_bytes = 8u << 20;

  // What a batch keeps in place until rows name its records.
  struct Pins {
    std::vector<SharedSegment> segments;
    VersionsInHand::Mark versions;
  };
  // A segment that is being filled.
  struct Appender {
    Mutex mutex;  // guards what follows and the writes to the segment
    SharedSegment segment NACRE_GUARDED_BY(mutex);
    std::uint64_t written_back NACRE_GUARDED_BY(mutex) = 0;
    // Whether the segment after this one is being made, which happens without the mutex.
    bool is_creating NACRE_GUARDED_BY(mutex) = false;
    ConditionVariable created;  // signalled also if that failed
    // The threads that use this appender as a lane; guarded by lanes_mutex_.
    unsigned user_count = 0;

    void close(SegmentTable& table) NACRE_REQUIRES(mutex);
  };
  // The use of one of the appenders that append() fills. While this exists, the lane counts as
  // taken.
  class Lane {
   public:
    Lane(SegmentStoreImpl& store, Appender& appender) : store_(store), appender_(appender) {}
    ~Lane() {
      LockGuard lock(store_.lanes_mutex_);
      --appender_.user_count;
    }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    Appender& appender() const { return appender_; }

   private:
    SegmentStoreImpl& store_;
    Appender& appender_;
  };
  // The first lane that no thread uses, or else the lane that the fewest threads use.
  Lane take_lane() NACRE_EXCLUDES(lanes_mutex_);

  // Records that are sealed in one payload, from its making until they are written.
  struct Batch {
    std::span<const SealRequest> requests;
    std::span<SealedRecord> sealed;  // the results, one for each request
    std::uint64_t bound = 0;         // the maximum of the records' bytes
    std::unique_ptr<Work> work;
    std::shared_ptr<WriteSession> session;
    std::unique_ptr<std::latch> done;  // for a payload that was submitted
  };

  // Room for this many records of at most this many bytes together.
  Result<WriteTurn> take_turn(std::size_t count, std::uint64_t bytes)
      NACRE_EXCLUDES(session_mutex_);
  Result<> begin_session() NACRE_REQUIRES(session_mutex_);
  using AppenderLocks = std::vector<std::unique_lock<Mutex>>;
  AppenderLocks lock_appenders();
  Result<std::shared_ptr<WriteSession>> draw_session() NACRE_REQUIRES(session_mutex_);
  // Called while the locks of lock_appenders() are held.
  void take_session(std::shared_ptr<WriteSession> session) NACRE_REQUIRES(session_mutex_);
  Result<> renew_versions() NACRE_EXCLUDES(session_mutex_);
  // Under any suite.
  std::size_t bound_of(std::size_t plain_size) const {
    return engine::record_size_bound(widest_suite, options_.padding, plain_size);
  }
  // Memory for payloads of about this many plain bytes. They hold whole chunks, at least two, and
  // each chunk has the room that its record may take.
  std::size_t work_size_for(std::uint64_t plain_bytes) const {
    return std::max<std::uint64_t>(2, plain_bytes / options_.chunk_size_bytes) *
           bound_of(options_.chunk_size_bytes);
  }
  std::uint64_t record_size_bytes_max() const { return bound_of(options_.chunk_size_bytes); }
  // If checkpoint is true, appends to the segments of checkpoints, otherwise to a lane.
  Result<SealedBatch> append_to(bool checkpoint, const metadata::InodeCodec& codec,
                                std::span<const SealRequest> requests);
  // Takes as many of the requests as fit into one payload.
  Result<Batch> cut_batch(std::span<const SealRequest> requests,
                          std::span<SealedRecord> sealed) const;
  Result<> prepare(Batch& batch, const metadata::InodeCodec& codec);
  Result<> write_batch(bool checkpoint, const Batch& batch, bool& written, Pins& pins);
  // Waits for the engine, writes the records, and gives the work back. If an epoch began in the
  // meantime, the records are sealed anew.
  Result<> finish(bool checkpoint, const metadata::InodeCodec& codec, Batch& batch, Pins& pins);
  void give_back(Batch& batch);
  Result<bool> write_out(Appender& appender, std::span<const ByteView> pieces, std::uint32_t epoch,
                         std::span<SealedRecord> sealed, Pins& pins,
                         PageCache page_cache = PageCache::used);
  // Waits until the appender has a segment that takes this many bytes; a fresh segment takes any
  // number. lock holds the appender's mutex, and releases it while a segment is made. So a disk
  // that does not answer delays only callers for which the old segment has no room.
  Result<> make_room(Appender& appender, std::uint64_t bytes, UniqueLock<Mutex>& lock)
      NACRE_REQUIRES(appender.mutex);
  std::uint32_t session_epoch() NACRE_EXCLUDES(session_mutex_);
  Result<std::optional<Victim>> victim_of(SharedSegment segment);
  Result<PreparedMove> reseal(std::span<const ByteView> records);
  // The records lie in the work's input, the results in its output.
  Result<PreparedMove> reseal_in(Work& work, std::span<const ByteView> records);
  Result<metadata::InodeCodec> codec_of(InodeNumber inode) const;
  Result<PreparedMove> recompress(std::span<const ByteView> records);

  metadata::Database& database_;
  std::shared_ptr<const metadata::KeyTree> keys_;
  RecordKeys record_keys_;
  engine::Engine& engine_;
  const SegmentStoreOptions options_;
  SegmentTable table_;
  GenuineRecords genuine_;
  WorkPool work_;
  WorkPool large_work_;  // for the payloads of append()
  PlainMemory plain_memory_;
  PlainMemory clean_memory_;
  RecordReader reader_;

  std::atomic<engine::Codec> codec_;  // of new records
  std::atomic<int> level_;
  std::atomic<bool> recompress_{false};

  Mutex session_mutex_;  // before the appenders' mutexes
  // Changes under session_mutex_ and all appenders' mutexes. Any one of them suffices for reading.
  std::shared_ptr<WriteSession> session_;
  // Versions from version_end_ on do not belong to this session: the next session, or the next
  // mount, gives them out. Both are set under session_mutex_.
  std::atomic<std::uint64_t> next_version_{0};
  std::atomic<std::uint64_t> version_end_{0};
  VersionsInHand in_hand_;
  std::atomic<std::uint64_t> settled_version_{0};

  std::array<Appender, fresh_lane_count_max> fresh_;  // for records that append() makes
  Mutex lanes_mutex_;
  std::array<Appender, move_lane_count_max> moved_;  // for records that compaction moves
  Appender checkpoint_;                              // for records of checkpoints

  std::atomic<std::uint64_t> appended_records_{0}, appended_bytes_{0}, plain_bytes_{0};
  std::atomic<std::uint64_t> moved_records_{0}, moved_bytes_{0};
  struct CodecCounters {
    std::atomic<std::uint64_t> record_count{0}, plain_bytes{0}, stored_bytes{0};
  };
  std::array<CodecCounters, codec_count> codecs_ = {};
  std::atomic<std::uint64_t> activity_{0};
};

}  // namespace nacre::fs
