// SPDX-License-Identifier: Apache-2.0
// Sealing into segments, a payload at a time.
#include "fs/store/segment_store.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/store/record_names.h"
#include "fs/store/record_reader.h"
#include "fs/store/segment_table.h"
#include "fs/store/versions_in_hand.h"
#include "fs/store/work_pool.h"
#include "fs/store/write_session.h"

namespace nacre::fs {

using metadata::Table;

namespace {

constexpr std::size_t spare_work_count_max = 6;
// Larger ones are for flushes, which one thread and now and then a commit have.
constexpr std::size_t spare_large_work_count_max = 2;

// Memory for payloads of about so many plain bytes: of whole chunks, two at least, each with the
// room that its record may take.
std::size_t work_size_for(std::uint64_t plain_bytes, engine::CipherSuite suite,
                          const SegmentStoreOptions& options) {
  const std::uint64_t chunk_count =
      std::max<std::uint64_t>(2, plain_bytes / options.chunk_size_bytes);
  return chunk_count * engine::record_size_bound(suite, options.padding, options.chunk_size_bytes);
}

class SegmentStoreImpl final : public SegmentStore {
 public:
  SegmentStoreImpl(std::shared_ptr<metadata::BackingDirectory> directory,
                   metadata::Database& database, std::shared_ptr<const metadata::KeyTree> keys,
                   engine::Engine& engine, const SegmentStoreOptions& options)
      : database_(database),
        keys_(std::move(keys)),
        engine_(engine),
        options_(options),
        table_(std::move(directory), database),
        suite_(keys_->current_epoch().suite),
        work_(engine, keys_->volume_id(), work_size_for(payload_size_bytes_min, suite_, options),
              spare_work_count_max),
        large_work_(engine, keys_->volume_id(),
                    work_size_for(flush_payload_size_bytes(engine, options), suite_, options),
                    spare_large_work_count_max),
        reader_(table_, *keys_, engine, work_, record_size_bytes_max()),
        session_size_bytes_max_(
            std::min(options.session_size_bytes_max, engine::session_size_bytes_max(suite_))) {}

  Result<> recover() {
    NACRE_TRY(table_.recover(keys_->volume_id(), options_.read_only));
    if (options_.read_only) return {};
    // With what the mount put into the group before.
    if (database_.freeze()) NACRE_TRY(database_.commit_frozen(true));
    return begin_session();
  }

  Result<SealedBatch> append(std::span<const SealRequest> requests) override;
  RecordVersion next_version() override { return RecordVersion{next_version_++}; }
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
  std::vector<Result<RecordName>> names_of(std::span<const ByteView> records) override {
    return names_of_records(engine_, *keys_, options_.chunk_size_bytes, records);
  }
  Result<SealedBatch> append_sealed(std::span<const ByteView> records) override;
  std::uint64_t activity() const override { return activity_.load(std::memory_order_relaxed); }

  void add_live(const RecordLocation& location) override { table_.add_live(location, +1); }
  void remove_live(const RecordLocation& location) override { table_.add_live(location, -1); }
  bool stage() override {
    settled_version_ = in_hand_.lowest(next_version_);
    return table_.stage();
  }
  Result<> sync() override { return table_.sync(); }
  void committed() override { table_.committed(); }
  Result<SegmentHold> hold_committed() override { return table_.hold_committed(); }

  SegmentStats stats() const override {
    const auto totals = table_.totals(1 - reclaimable_share_min);
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
                        .moved_bytes = moved_bytes_};
  }

 private:
  static constexpr std::uint64_t writeback_step_bytes = 8u << 20;

  // What a batch keeps in place until rows name its records.
  struct Pins {
    std::vector<SharedSegment> segments;
    VersionsInHand::Mark versions;
  };
  struct Packing {
    engine::Codec codec;
    int level;
  };
  // A segment that is being filled.
  struct Appender {
    std::mutex mutex;  // guards what follows and the writes to the segment
    SharedSegment segment;
    std::uint64_t written_back = 0;

    void close();
  };

  Result<std::optional<Victim>> victim_of(SharedSegment segment);
  // Room for so many records, of so many bytes at most.
  Result<WriteTurn> take_turn(std::size_t count, std::uint64_t bytes);
  Result<> begin_session();
  std::uint64_t record_size_bytes_max() const {
    return engine::record_size_bound(suite_, options_.padding, options_.chunk_size_bytes);
  }
  Result<SealedBatch> append_to(Appender& appender, const Packing& packing,
                                std::span<const SealRequest> requests);
  Result<> append_batch(Appender& appender, const Packing& packing,
                        std::span<const SealRequest> requests, std::uint64_t bound,
                        std::vector<SealedRecord>& sealed, Pins& pins);
  Result<> write_out(Appender& appender, std::span<const ByteView> pieces,
                     std::span<SealedRecord> sealed, Pins& pins);

  metadata::Database& database_;
  std::shared_ptr<const metadata::KeyTree> keys_;
  engine::Engine& engine_;
  const SegmentStoreOptions options_;
  SegmentTable table_;
  const engine::CipherSuite suite_;
  WorkPool work_;
  WorkPool large_work_;  // of what append() seals in one payload
  RecordReader reader_;

  const std::uint64_t session_size_bytes_max_;

  std::mutex session_mutex_;  // before the appenders' mutexes
  // Changes under session_mutex_ and all appenders' mutexes: any of them suffices for reading.
  std::shared_ptr<WriteSession> session_;
  std::atomic<std::uint64_t> next_version_{0};
  VersionsInHand in_hand_;
  std::atomic<std::uint64_t> settled_version_{0};

  Appender fresh_;       // records that append() makes
  Appender moved_;       // those that compaction brings
  Appender checkpoint_;  // those of checkpoints

  std::atomic<std::uint64_t> appended_records_{0}, appended_bytes_{0}, plain_bytes_{0};
  std::atomic<std::uint64_t> moved_records_{0}, moved_bytes_{0};
  std::atomic<std::uint64_t> activity_{0};
};

Result<WriteTurn> SegmentStoreImpl::take_turn(std::size_t count, std::uint64_t bytes) {
  std::lock_guard lock(session_mutex_);
  if (session_->record_count + count > session_record_count_max ||
      session_->stored_bytes + bytes > session_size_bytes_max_) {
    NACRE_TRY(begin_session());
  }
  session_->stored_bytes += bytes;
  return WriteTurn{session_, session_->record_count.fetch_add(count)};
}

// A segment holds records of the session that made it and of earlier ones: both end here.
Result<> SegmentStoreImpl::begin_session() {
  NACRE_ASSIGN(auto session, begin_write_session(database_, *keys_));
  std::scoped_lock lock(fresh_.mutex, moved_.mutex, checkpoint_.mutex);
  for (Appender* appender : {&fresh_, &moved_, &checkpoint_})
    appender->close();
  next_version_ = session->ordinal << metadata::record_version_session_shift;
  session_ = std::move(session);
  return {};
}

Result<SealedBatch> SegmentStoreImpl::append(std::span<const SealRequest> requests) {
  activity_.fetch_add(1, std::memory_order_relaxed);
  return append_to(fresh_, {.codec = options_.codec, .level = options_.level}, requests);
}

Result<SealedBatch> SegmentStoreImpl::append_checkpoint(std::span<const SealRequest> requests) {
  return append_to(checkpoint_, {.codec = engine::Codec::zstd, .level = 0}, requests);
}

void SegmentStoreImpl::close_checkpoint() {
  std::lock_guard lock(checkpoint_.mutex);
  checkpoint_.close();
}

Result<SealedBatch> SegmentStoreImpl::append_to(Appender& appender, const Packing& packing,
                                                std::span<const SealRequest> requests) {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  SealedBatch batch;
  batch.records.reserve(requests.size());
  auto pins = std::make_shared<Pins>();
  pins->versions = in_hand_.mark(next_version_);
  while (!requests.empty()) {
    std::size_t count = 0;
    std::size_t bound = 0;
    for (; count < requests.size(); ++count) {
      const std::size_t one =
          engine::record_size_bound(suite_, options_.padding, requests[count].plain.size());
      if (bound + one > large_work_.size_bytes()) break;
      bound += one;
    }
    if (count == 0) return fail(ErrorCode::invalid_argument, "a record larger than a chunk");
    NACRE_TRY(append_batch(appender, packing, requests.first(count), bound, batch.records, *pins));
    requests = requests.subspan(count);
  }
  batch.pin = std::move(pins);
  return batch;
}

Result<> SegmentStoreImpl::append_batch(Appender& appender, const Packing& packing,
                                        std::span<const SealRequest> requests, std::uint64_t bound,
                                        std::vector<SealedRecord>& sealed, Pins& pins) {
  WorkPool& pool = bound <= work_.size_bytes() ? work_ : large_work_;
  NACRE_ASSIGN(auto work, pool.take());
  NACRE_ASSIGN(const WriteTurn turn, take_turn(requests.size(), bound));
  WriteSession& session = *turn.session;
  engine::Payload& payload = work->payload;
  const std::uint32_t key = payload.add_key(session.key->suite, session.key->key.view());
  std::size_t input_offset = 0;
  std::size_t output_offset = 0;
  const std::size_t first = sealed.size();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const SealRequest& request = requests[i];
    RecordName name = request.name;
    name.version = next_version();
    std::copy(request.plain.begin(), request.plain.end(), work->input.data() + input_offset);
    const std::size_t room =
        engine::record_size_bound(suite_, options_.padding, request.plain.size());
    payload.messages.push_back(
        engine::Message{.operation = engine::Operation::seal,
                        .codec = packing.codec,
                        .level = static_cast<std::int8_t>(packing.level),
                        .padding = options_.padding,
                        .key_index = key,
                        .input_offset = input_offset,
                        .input_size = request.plain.size(),
                        .output_offset = output_offset,
                        .output_capacity = room,
                        .epoch = session.epoch,
                        .counter = static_cast<std::uint32_t>(turn.counter + i),
                        .salt = session.salt,
                        .identity = metadata::encode(name)});
    sealed.push_back(SealedRecord{.location = {}, .version = name.version});
    input_offset += request.plain.size();
    output_offset += room;
    plain_bytes_ += request.plain.size();
  }
  engine_.run(payload);
  Result<> outcome;
  if (payload.results.size() < payload.messages.size()) {
    outcome = fail(ErrorCode::out_of_memory, "no memory for the results of the engine");
  }
  for (const engine::MessageResult& result : payload.results) {
    if (!result.ok) outcome = fail(result.error, fmt::format("sealing a chunk: {}", result.detail));
  }
  if (outcome) {
    std::vector<ByteView> pieces;
    pieces.reserve(requests.size());
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const std::uint64_t size = payload.results[i].output_size;
      pieces.emplace_back(work->output.data() + payload.messages[i].output_offset, size);
      total += size;
    }
    session.stored_bytes -= bound - total;
    outcome = write_out(appender, pieces, std::span(sealed).subspan(first), pins);
    if (outcome) {
      appended_records_ += requests.size();
      appended_bytes_ += total;
    }
  }
  pool.give_back(std::move(work));
  return outcome;
}

void SegmentStoreImpl::Appender::close() {
  if (segment) segment->open_for_append = false;
  segment.reset();
  written_back = 0;
}

Result<> SegmentStoreImpl::write_out(Appender& appender, std::span<const ByteView> pieces,
                                     std::span<SealedRecord> sealed, Pins& pins) {
  std::uint64_t total = 0;
  for (const ByteView& piece : pieces)
    total += piece.size();
  std::lock_guard lock(appender.mutex);
  if (appender.segment && appender.segment->size + total > options_.segment_size_bytes) {
    appender.close();
  }
  if (!appender.segment) {
    NACRE_ASSIGN(appender.segment,
                 table_.create(keys_->volume_id(), session_->epoch, session_->salt));
  }
  Segment& segment = *appender.segment;
  NACRE_ASSIGN(auto file, table_.file(segment));
  std::uint64_t offset = segment.size;
  NACRE_TRY(file->write(offset, pieces));
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    sealed[i].location =
        RecordLocation{segment.number, offset, static_cast<std::uint32_t>(pieces[i].size())};
    offset += pieces[i].size();
  }
  // In this order: a commit that takes the size syncs what it covers.
  segment.unsynced = true;
  segment.size = offset;
  segment.changed = true;
  pins.segments.push_back(appender.segment);
  if (offset - appender.written_back >= writeback_step_bytes) {
    file->start_writeback(appender.written_back, offset - appender.written_back);
    appender.written_back = offset;
  }
  return {};
}

Result<std::optional<Victim>> SegmentStoreImpl::victim_of(SharedSegment segment) {
  if (options_.read_only || !segment) return std::nullopt;
  NACRE_ASSIGN(auto file, table_.file(*segment));
  return Victim{segment, segment->number, segment->size, std::move(file)};
}

void SegmentStoreImpl::note_compacted(const Victim& victim, bool immovable) {
  victim.segment->live_bytes_left = victim.segment->live_bytes.load();
  if (immovable) victim.segment->immovable = true;
}

void SegmentStoreImpl::close_segments() {
  for (Appender* appender : {&fresh_, &moved_}) {
    std::lock_guard lock(appender->mutex);
    appender->close();
  }
}

Result<SealedBatch> SegmentStoreImpl::append_sealed(std::span<const ByteView> records) {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  SealedBatch batch;
  if (records.empty()) return batch;
  batch.records.resize(records.size());
  auto pins = std::make_shared<Pins>();
  NACRE_TRY(write_out(moved_, records, batch.records, *pins));
  moved_records_ += records.size();
  for (const ByteView& record : records)
    moved_bytes_ += record.size();
  batch.pin = std::move(pins);
  return batch;
}

}  // namespace

Result<std::unique_ptr<SegmentStore>> SegmentStore::open(
    std::shared_ptr<metadata::BackingDirectory> directory, metadata::Database& database,
    std::shared_ptr<const metadata::KeyTree> keys, engine::Engine& engine,
    const SegmentStoreOptions& options) {
  auto store = std::make_unique<SegmentStoreImpl>(std::move(directory), database, std::move(keys),
                                                  engine, options);
  NACRE_TRY(store->recover());
  return store;
}

}  // namespace nacre::fs
