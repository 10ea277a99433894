// SPDX-License-Identifier: Apache-2.0
// Sealing into segments and reading from them, a payload at a time.
#include "fs/store/segment_store.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "fs/store/record_names.h"
#include "fs/store/segment_table.h"
#include "fs/store/write_session.h"

namespace nacre::fs {

using metadata::Table;

namespace {

Result<> no_memory_for_results() {
  return fail(ErrorCode::out_of_memory, "no memory for the results of the engine");
}

// One payload's memory. Batches are cut to fit it.
struct Work {
  engine::Arena input, output;
  engine::Payload payload;
};

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
        work_size_bytes_(std::max<std::size_t>(
            work_size_bytes_min,
            2 * engine::record_size_bound(suite_, options.padding, options.chunk_size_bytes))),
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
  void read(std::span<ReadRequest> requests) override;

  Result<std::optional<Victim>> find_victim(double live_share_max) override;
  void note_compacted(const Victim& victim, bool immovable) override;
  void close_segments() override;
  std::vector<Result<RecordName>> names_of(std::span<const ByteView> records) override {
    return names_of_records(engine_, *keys_, options_.chunk_size_bytes, records);
  }
  Result<SealedBatch> append_sealed(std::span<const ByteView> records) override;
  std::uint64_t activity() const override { return activity_.load(std::memory_order_relaxed); }

  void add_live(const RecordLocation& location) override { table_.add_live(location, +1); }
  void remove_live(const RecordLocation& location) override { table_.add_live(location, -1); }
  bool stage() override { return table_.stage(); }
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
  static constexpr std::size_t work_size_bytes_min = 2u << 20;
  static constexpr std::size_t spare_work_count_max = 6;
  static constexpr std::size_t read_gap_bytes_max = 16u << 10;
  static constexpr std::uint64_t writeback_step_bytes = 8u << 20;

  using Pins = std::vector<SharedSegment>;
  // A segment that is being filled.
  struct Appender {
    std::mutex mutex;  // guards what follows and the writes to the segment
    SharedSegment segment;
    std::uint64_t written_back = 0;

    void close();
  };

  // Room for so many records, of so many bytes at most.
  Result<WriteTurn> take_turn(std::size_t count, std::uint64_t bytes);
  Result<> begin_session();
  Result<std::unique_ptr<Work>> take_work();
  void give_back(std::unique_ptr<Work> work);
  Result<> append_batch(std::span<const SealRequest> requests, std::uint64_t bound,
                        std::vector<SealedRecord>& sealed, Pins& pins);
  Result<> write_out(Appender& appender, std::span<const ByteView> pieces,
                     std::span<SealedRecord> sealed, Pins& pins);
  void read_batch(Work& work, std::span<ReadRequest*> requests);
  Result<> fetch(ReadRequest** first, ReadRequest** last, MutableByteView into);

  metadata::Database& database_;
  std::shared_ptr<const metadata::KeyTree> keys_;
  engine::Engine& engine_;
  const SegmentStoreOptions options_;
  SegmentTable table_;
  const engine::CipherSuite suite_;
  const std::size_t work_size_bytes_;

  const std::uint64_t session_size_bytes_max_;

  std::mutex session_mutex_;  // before the appenders' mutexes
  // Changes under session_mutex_ and both appenders' mutexes: any of them suffices for reading.
  std::shared_ptr<WriteSession> session_;
  std::atomic<std::uint64_t> next_version_{0};

  Appender fresh_;  // records that append() makes
  Appender moved_;  // those that compaction brings

  std::mutex work_mutex_;
  std::vector<std::unique_ptr<Work>> spare_work_;

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
  std::scoped_lock lock(fresh_.mutex, moved_.mutex);
  fresh_.close();
  moved_.close();
  next_version_ = session->ordinal << metadata::record_version_session_shift;
  session_ = std::move(session);
  return {};
}

Result<std::unique_ptr<Work>> SegmentStoreImpl::take_work() {
  {
    std::lock_guard lock(work_mutex_);
    if (!spare_work_.empty()) {
      auto work = std::move(spare_work_.back());
      spare_work_.pop_back();
      return work;
    }
  }
  auto work = std::make_unique<Work>();
  NACRE_ASSIGN(work->input, engine_.allocate(work_size_bytes_));
  NACRE_ASSIGN(work->output, engine_.allocate(work_size_bytes_));
  work->payload.input = work->input.data();
  work->payload.input_size = work->input.size();
  work->payload.output = work->output.data();
  work->payload.output_size = work->output.size();
  work->payload.volume_id = keys_->volume_id();
  return work;
}

void SegmentStoreImpl::give_back(std::unique_ptr<Work> work) {
  work->payload.clear();
  std::lock_guard lock(work_mutex_);
  if (spare_work_.size() < spare_work_count_max) spare_work_.push_back(std::move(work));
}

Result<SealedBatch> SegmentStoreImpl::append(std::span<const SealRequest> requests) {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  activity_.fetch_add(1, std::memory_order_relaxed);
  SealedBatch batch;
  batch.records.reserve(requests.size());
  auto pins = std::make_shared<Pins>();
  while (!requests.empty()) {
    std::size_t count = 0;
    std::size_t bound = 0;
    for (; count < requests.size(); ++count) {
      const std::size_t one =
          engine::record_size_bound(suite_, options_.padding, requests[count].plain.size());
      if (bound + one > work_size_bytes_) break;
      bound += one;
    }
    if (count == 0) return fail(ErrorCode::invalid_argument, "a record larger than a chunk");
    NACRE_TRY(append_batch(requests.first(count), bound, batch.records, *pins));
    requests = requests.subspan(count);
  }
  batch.pin = std::move(pins);
  return batch;
}

Result<> SegmentStoreImpl::append_batch(std::span<const SealRequest> requests, std::uint64_t bound,
                                        std::vector<SealedRecord>& sealed, Pins& pins) {
  NACRE_ASSIGN(auto work, take_work());
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
                        .codec = options_.codec,
                        .level = static_cast<std::int8_t>(options_.level),
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
  if (payload.results.size() < payload.messages.size()) outcome = no_memory_for_results();
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
    outcome = write_out(fresh_, pieces, std::span(sealed).subspan(first), pins);
    if (outcome) {
      appended_records_ += requests.size();
      appended_bytes_ += total;
    }
  }
  give_back(std::move(work));
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
  pins.push_back(appender.segment);
  if (offset - appender.written_back >= writeback_step_bytes) {
    file->start_writeback(appender.written_back, offset - appender.written_back);
    appender.written_back = offset;
  }
  return {};
}

Result<std::optional<Victim>> SegmentStoreImpl::find_victim(double live_share_max) {
  if (options_.read_only) return std::nullopt;
  auto segment = table_.find_victim(live_share_max);
  if (!segment) return std::nullopt;
  NACRE_ASSIGN(auto file, table_.file(*segment));
  return Victim{.segment = segment,
                .number = segment->number,
                .size = segment->size,
                .file = std::move(file)};
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

void SegmentStoreImpl::read(std::span<ReadRequest> requests) {
  activity_.fetch_add(1, std::memory_order_relaxed);
  std::vector<ReadRequest*> order(requests.size());
  std::iota(order.begin(), order.end(), requests.data());
  if (order.size() > 1) {
    std::sort(order.begin(), order.end(),
              [](const ReadRequest* a, const ReadRequest* b) { return a->location < b->location; });
  }
  const std::uint64_t record_max =
      engine::record_size_bound(suite_, options_.padding, options_.chunk_size_bytes);
  auto work = take_work();
  std::span<ReadRequest*> rest(order);
  while (!rest.empty()) {
    std::size_t count = 0;
    std::size_t stored = 0;
    std::size_t plain = 0;
    for (; count < rest.size(); ++count) {
      stored += rest[count]->location.stored_size + read_gap_bytes_max;
      plain += rest[count]->out.size();
      if (stored > work_size_bytes_ || plain > work_size_bytes_) break;
    }
    if (!work) {
      for (ReadRequest* request : rest)
        request->result = tl::unexpected(work.error());
      return;
    }
    if (count == 0 || rest.front()->location.stored_size > record_max) {
      rest.front()->result = fail(ErrorCode::corrupt, "a row names a record larger than a chunk");
      rest = rest.subspan(1);
      continue;
    }
    read_batch(**work, rest.first(count));
    (*work)->payload.clear();
    rest = rest.subspan(count);
  }
  give_back(std::move(*work));
}

// Reads records of one segment that lie close together with one call.
Result<> SegmentStoreImpl::fetch(ReadRequest** first, ReadRequest** last, MutableByteView into) {
  const RecordLocation& begin = (*first)->location;
  NACRE_ASSIGN(auto segment, table_.find(begin.segment));
  NACRE_ASSIGN(auto file, table_.file(*segment));
  NACRE_ASSIGN(auto count, file->read(begin.offset, into));
  for (ReadRequest** request = first; request != last; ++request) {
    const RecordLocation& location = (*request)->location;
    if (location.offset + location.stored_size - begin.offset > count) {
      (*request)->result =
          fail(ErrorCode::missing,
               fmt::format("{} ends before offset {} + {}", segment_path(location.segment),
                           location.offset, location.stored_size));
    }
  }
  return {};
}

void SegmentStoreImpl::read_batch(Work& work, std::span<ReadRequest*> requests) {
  std::vector<ReadRequest*> sent;
  std::size_t input_offset = 0;
  std::size_t output_offset = 0;
  for (std::size_t first = 0; first < requests.size();) {
    const RecordLocation& begin = requests[first]->location;
    std::size_t last = first + 1;
    std::uint64_t end = begin.offset + begin.stored_size;
    for (; last < requests.size(); ++last) {
      const RecordLocation& next = requests[last]->location;
      if (next.segment != begin.segment || next.offset < end ||
          next.offset - end > read_gap_bytes_max) {
        break;
      }
      end = next.offset + next.stored_size;
    }
    const MutableByteView into(work.input.data() + input_offset, end - begin.offset);
    const auto fetched = fetch(&requests[first], requests.data() + last, into);
    for (std::size_t i = first; i < last; ++i) {
      ReadRequest& request = *requests[i];
      const RecordLocation& location = request.location;
      if (!fetched) request.result = tl::unexpected(fetched.error());
      if (!request.result) continue;
      const std::size_t at = location.offset - begin.offset;
      const auto header = engine::parse_record_header(into.subspan(at, location.stored_size));
      auto key =
          header ? keys_->session_key(header->epoch, header->salt) : tl::unexpected(header.error());
      if (!key) {
        request.result = add_context(
            key.error(),
            fmt::format("{} offset {}", segment_path(location.segment), location.offset));
        continue;
      }
      work.payload.messages.push_back(
          engine::Message{.operation = engine::Operation::unseal,
                          .check_identity = true,
                          .key_index = work.payload.add_key((*key)->suite, (*key)->key.view()),
                          .input_offset = input_offset + at,
                          .input_size = location.stored_size,
                          .output_offset = output_offset,
                          .output_capacity = request.out.size(),
                          .identity = metadata::encode(request.name)});
      output_offset += request.out.size();
      sent.push_back(&request);
    }
    input_offset += into.size();
    first = last;
  }
  if (sent.empty()) return;
  engine_.run(work.payload);
  if (work.payload.results.size() < work.payload.messages.size()) {
    for (ReadRequest* request : sent)
      request->result = no_memory_for_results();
    return;
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const engine::MessageResult& result = work.payload.results[i];
    ReadRequest& request = *sent[i];
    const auto where = [&] {
      return fmt::format("{} offset {}", segment_path(request.location.segment),
                         request.location.offset);
    };
    if (!result.ok) {
      request.result = fail(result.error, fmt::format("{}: {}", where(), result.detail));
    } else if (result.output_size != request.out.size()) {
      request.result =
          fail(ErrorCode::tampered, fmt::format("{}: holds {} bytes where the map says {}", where(),
                                                result.output_size, request.out.size()));
    } else {
      std::copy_n(work.output.data() + work.payload.messages[i].output_offset, result.output_size,
                  request.out.begin());
    }
  }
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
