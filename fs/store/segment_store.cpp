// SPDX-License-Identifier: Apache-2.0
// Write sessions, and sealing into segments, one payload at a time.
#include "fs/store/segment_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fs/store/genuine_records.h"
#include "fs/store/record_batch.h"
#include "fs/store/segment_store_impl.h"
#include "gpu_engine/base/check.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

namespace {

// The slab in which all requests lie; empty if there is none.
ByteView common_slab(const PlainMemory& memory, std::span<const SealRequest> requests) {
  const ByteView slab = memory.slab_of(requests.front().plain);
  const auto lies_there = [&](const SealRequest& request) {
    return request.plain.data() >= slab.data() &&
           request.plain.data() + request.plain.size() <= slab.data() + slab.size();
  };
  return std::ranges::all_of(requests, lies_there) ? slab : ByteView();
}

}  // namespace

Result<WriteTurn> SegmentStoreImpl::take_turn(std::size_t count, std::uint64_t bytes) {
  LockGuard lock(session_mutex_);
  const std::uint64_t size_bytes_max = std::min(
      options_.session_size_bytes_max, engine::session_size_bytes_max(session_->key->suite));
  if (session_->record_count + count > session_record_count_max ||
      session_->stored_bytes + bytes > size_bytes_max || keys_->is_superseded(session_->epoch)) {
    NACRE_TRY(begin_session());
  }
  session_->stored_bytes += bytes;
  const std::uint64_t counter = session_->record_count.fetch_add(count);
  // A counter is a nonce: none is used twice under a session's key.
  NACRE_CHECK(counter + count <= session_record_count_max, "counters {} to {} of session {}",
              counter, counter + count, session_->ordinal);
  return WriteTurn{session_, counter};
}

// A segment holds no record of a session later than its own, so the segments being filled end with
// the old session.
Result<std::shared_ptr<WriteSession>> SegmentStoreImpl::draw_session() {
  NACRE_ASSIGN(auto session, begin_write_session(database_, *keys_));
  if (session_ && session->ordinal <= session_->ordinal) {
    return fail(
        ErrorCode::rolled_back,
        fmt::format("the database in db/ was put back to an older state while the volume was "
                    "in use: it gives write session {} after session {}",
                    session->ordinal, session_->ordinal));
  }
  NACRE_CHECK(!session_ || session->epoch >= session_->epoch, "epoch {} follows epoch {}",
              session->epoch, session_->epoch);
  record_keys_.admit(session->salt, session->epoch);
  return session;
}

SegmentStoreImpl::AppenderLocks SegmentStoreImpl::lock_appenders() {
  AppenderLocks locks;
  // The analysis does not follow a lock into a vector.
  each_appender([&](Appender& appender) NACRE_NO_THREAD_SAFETY_ANALYSIS {
    locks.emplace_back(appender.mutex);
    appender.close(table_);
  });
  return locks;
}

void SegmentStoreImpl::take_session(std::shared_ptr<WriteSession> session) {
  const std::uint64_t first = session->ordinal << metadata::record_version_session_shift;
  NACRE_CHECK(options_.session_version_count_max < std::uint64_t{1}
                                                       << metadata::record_version_session_shift,
              "a session has {} versions", options_.session_version_count_max);
  next_version_ = first;
  version_end_ = first + options_.session_version_count_max;
  session_ = std::move(session);
}

Result<> SegmentStoreImpl::begin_session() {
  NACRE_ASSIGN(auto session, draw_session());
  const AppenderLocks locks = lock_appenders();
  take_session(std::move(session));
  return {};
}

// Records that were sealed before and are not written yet are sealed anew, as at the beginning of
// any epoch.
Result<> SegmentStoreImpl::switch_epoch(std::uint32_t next,
                                        const std::function<Result<>()>& change) {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  LockGuard lock(session_mutex_);
  const AppenderLocks locks = lock_appenders();
  NACRE_CHECK(genuine_.is_active(), "epoch {} begins without a survey of records", next);
  NACRE_TRY(genuine_.complete(next));
  NACRE_TRY(change());
  NACRE_ASSIGN(auto session, draw_session());
  take_session(std::move(session));
  genuine_.end();
  return {};
}

// Each record is in a segment that is closed now, or is appended later. A segment that is being
// made at this moment may be among both, which does no harm.
Result<> SegmentStoreImpl::begin_survey() {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  LockGuard lock(session_mutex_);
  const AppenderLocks locks = lock_appenders();
  genuine_.begin();
  return {};
}

void SegmentStoreImpl::end_survey() {
  LockGuard lock(session_mutex_);
  const AppenderLocks locks = lock_appenders();
  genuine_.end();
}

Result<> SegmentStoreImpl::renew_versions() {
  LockGuard lock(session_mutex_);
  if (next_version_ < version_end_) return {};  // another thread was first
  next_version_ = version_end_.load();          // threads that got no version counted on
  return begin_session();
}

Result<DrawnVersions> SegmentStoreImpl::draw_versions(std::size_t count) {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  DrawnVersions drawn{.versions = {}, .mark = in_hand_.mark(next_version_)};
  drawn.versions.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    NACRE_ASSIGN(const RecordVersion version, next_version());
    drawn.versions.push_back(version);
  }
  return drawn;
}

Result<> SegmentStoreImpl::begin_epoch() {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  LockGuard lock(session_mutex_);
  return session_->epoch == keys_->current_epoch_number() ? Result<>() : begin_session();
}

std::uint32_t SegmentStoreImpl::session_epoch() {
  LockGuard lock(session_mutex_);
  return session_->epoch;
}

void SegmentStoreImpl::set_codec(engine::Codec codec, int level) {
  codec_ = codec;
  level_ = level;
}

Result<SealedBatch> SegmentStoreImpl::append(std::span<const SealRequest> requests) {
  activity_.fetch_add(1, std::memory_order_relaxed);
  return append_to(/*checkpoint=*/false, {.codec = codec_, .level = level_}, requests);
}

Result<SealedBatch> SegmentStoreImpl::append_checkpoint(std::span<const SealRequest> requests) {
  return append_to(/*checkpoint=*/true, {.codec = engine::Codec::zstd, .level = 0}, requests);
}

void SegmentStoreImpl::close_checkpoint() {
  LockGuard lock(checkpoint_.mutex);
  checkpoint_.close(table_);
}

SegmentStoreImpl::Lane SegmentStoreImpl::take_lane() {
  const auto count = std::clamp(options_.fresh_lane_count, 1u, fresh_lane_count_max);
  LockGuard lock(lanes_mutex_);
  const auto lane = std::min_element(
      fresh_.begin(), fresh_.begin() + count,
      [](const Appender& a, const Appender& b) { return a.user_count < b.user_count; });
  ++lane->user_count;
  return {*this, *lane};
}

Result<SealedBatch> SegmentStoreImpl::append_to(bool checkpoint, const metadata::InodeCodec& codec,
                                                std::span<const SealRequest> requests) {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  SealedBatch sealed;
  sealed.records.resize(requests.size());
  auto pins = std::make_shared<Pins>();
  pins->versions = in_hand_.mark(next_version_);
  std::span<SealedRecord> records(sealed.records);
  // Two payloads take turns: one is with the engine while this thread makes or writes the other.
  std::optional<Batch> before;
  Result<> outcome;
  while (outcome && !requests.empty()) {
    auto batch = cut_batch(requests, records);
    outcome = batch ? prepare(*batch, codec) : tl::unexpected(batch.error());
    if (!outcome) {
      if (batch) give_back(*batch);
      break;
    }
    const std::size_t count = batch->requests.size();
    if (!before && count == requests.size()) {
      engine_.run(batch->work->payload);  // the only payload: this thread takes part
    } else {
      batch->done = std::make_unique<std::latch>(1);
      engine_.submit(batch->work->payload, [done = batch->done.get()] { done->count_down(); });
    }
    if (before) outcome = finish(checkpoint, codec, *before, *pins);
    before = std::move(*batch);
    requests = requests.subspan(count);
    records = records.subspan(count);
  }
  if (before && outcome) outcome = finish(checkpoint, codec, *before, *pins);
  if (before) give_back(*before);
  if (!outcome) return tl::unexpected(outcome.error());
  sealed.pin = std::move(pins);
  return sealed;
}

Result<SegmentStoreImpl::Batch> SegmentStoreImpl::cut_batch(std::span<const SealRequest> requests,
                                                            std::span<SealedRecord> sealed) const {
  std::size_t count = 0;
  std::uint64_t bound = 0;
  for (; count < requests.size(); ++count) {
    const std::size_t one = bound_of(requests[count].plain.size());
    if (bound + one > large_work_.size_bytes()) break;
    bound += one;
  }
  if (count == 0) return fail(ErrorCode::invalid_argument, "a record larger than a chunk");
  return Batch{.requests = requests.first(count), .sealed = sealed.first(count), .bound = bound};
}

Result<> SegmentStoreImpl::prepare(Batch& batch, const metadata::InodeCodec& codec) {
  if (!batch.work) {
    WorkPool& pool = batch.bound <= work_.size_bytes() ? work_ : large_work_;
    NACRE_ASSIGN(batch.work, pool.take());
  }
  NACRE_ASSIGN(const WriteTurn turn, take_turn(batch.requests.size(), batch.bound));
  batch.session = turn.session;
  const RecordSeal seal{
      .session = *turn.session, .first_counter = turn.counter, .padding = options_.padding};
  engine::Payload& payload = batch.work->payload;
  payload.clear();
  const ByteView slab = common_slab(plain_memory_, batch.requests);
  payload.input = slab.empty() ? batch.work->input.data() : slab.data();
  payload.input_size = slab.empty() ? batch.work->input.size() : slab.size();
  std::size_t copied_bytes = 0;
  std::size_t output_offset = 0;
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    const SealRequest& request = batch.requests[i];
    const metadata::InodeCodec& its_codec = request.codec ? *request.codec : codec;
    RecordName name = request.name;
    if (name.version == RecordVersion{}) {
      NACRE_ASSIGN(name.version, next_version());
      NACRE_CHECK(i == 0 || name.version > batch.sealed[i - 1].version,
                  "version {} follows version {}", name.version.value,
                  batch.sealed[i - 1].version.value);
    }
    if (slab.empty()) {
      std::copy(request.plain.begin(), request.plain.end(),
                batch.work->input.data() + copied_bytes);
    }
    const auto input_offset =
        slab.empty() ? copied_bytes : static_cast<std::size_t>(request.plain.data() - slab.data());
    const std::size_t room = bound_of(request.plain.size());
    add_seal(payload, seal, i,
             {.input_offset = input_offset,
              .input_size = request.plain.size(),
              .output_offset = output_offset,
              .output_capacity = room},
             its_codec, name);
    batch.sealed[i] = SealedRecord{.location = {}, .version = name.version};
    copied_bytes += request.plain.size();
    output_offset += room;
  }
  payload.check_bounds();
  return {};
}

// written is false if an epoch began in the meantime; the records must then be sealed anew.
Result<> SegmentStoreImpl::write_batch(bool checkpoint, const Batch& batch, bool& written,
                                       Pins& pins) {
  const engine::Payload& payload = batch.work->payload;
  for (const engine::MessageResult& result : payload.results) {
    if (!result.ok) return fail(result.error, fmt::format("sealing a chunk: {}", result.detail));
  }
  std::vector<ByteView> pieces;
  pieces.reserve(batch.requests.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    const std::uint64_t size = payload.results[i].output_size;
    NACRE_CHECK(size <= payload.messages[i].output_capacity,
                "a record of {} bytes was sealed where {} have room", size,
                payload.messages[i].output_capacity);
    pieces.emplace_back(batch.work->output.data() + payload.messages[i].output_offset, size);
    total += size;
  }
  batch.session->stored_bytes -= batch.bound - total;
  const std::uint32_t epoch = batch.session->epoch;
  if (checkpoint) {
    NACRE_ASSIGN(written, write_out(checkpoint_, pieces, epoch, batch.sealed, pins));
  } else {
    const Lane lane = take_lane();
    NACRE_ASSIGN(written, write_out(lane.appender(), pieces, epoch, batch.sealed, pins));
  }
  if (!written) return {};
  appended_records_ += batch.requests.size();
  appended_bytes_ += total;
  for (std::size_t i = 0; i < batch.requests.size(); ++i) {
    CodecCounters& counters = codecs_[static_cast<std::size_t>(payload.results[i].codec)];
    const std::uint64_t plain_size = batch.requests[i].plain.size();
    plain_bytes_ += plain_size;
    ++counters.record_count;
    counters.plain_bytes += plain_size;
    counters.stored_bytes += payload.results[i].output_size;
  }
  return {};
}

Result<> SegmentStoreImpl::finish(bool checkpoint, const metadata::InodeCodec& codec, Batch& batch,
                                  Pins& pins) {
  if (batch.done) batch.done->wait();
  bool written = false;
  Result<> outcome = write_batch(checkpoint, batch, written, pins);
  while (outcome && !written) {
    outcome = prepare(batch, codec);
    if (!outcome) break;
    engine_.run(batch.work->payload);
    outcome = write_batch(checkpoint, batch, written, pins);
  }
  give_back(batch);
  return outcome;
}

void SegmentStoreImpl::give_back(Batch& batch) {
  if (!batch.work) return;
  if (batch.done) batch.done->wait();
  WorkPool& pool = batch.bound <= work_.size_bytes() ? work_ : large_work_;
  pool.give_back(std::move(batch.work));
}

void SegmentStoreImpl::Appender::close(SegmentTable& table) {
  if (segment) table.close_for_append(segment);
  segment.reset();
  written_back = 0;
}

Result<> SegmentStoreImpl::make_room(Appender& appender, std::uint64_t bytes,
                                     UniqueLock<Mutex>& lock) {
  while (true) {
    if (appender.segment && appender.segment->size + bytes <= options_.segment_size_bytes) {
      return {};
    }
    if (appender.is_creating) {
      appender.created.wait(lock);
      continue;
    }
    appender.is_creating = true;
    const auto session = session_;
    Result<SharedSegment> made = nullptr;
    {
      const Unlocked unlocked(lock, appender.mutex);
      made = table_.create(keys_->volume_id(), session->epoch, session->salt);
    }
    appender.is_creating = false;
    appender.created.notify_all();
    if (!made) return tl::unexpected(made.error());
    if (session != session_) {
      // The segment belongs to a session that has ended. It stays empty, and a commit removes it.
      table_.close_for_append(*made);
      continue;
    }
    appender.close(table_);
    appender.segment = std::move(*made);
    return {};
  }
}

// A segment of one epoch holds no record of another one. So records that were sealed before an
// epoch began are not written after its beginning.
Result<bool> SegmentStoreImpl::write_out(Appender& appender, std::span<const ByteView> pieces,
                                         std::uint32_t epoch, std::span<SealedRecord> sealed,
                                         Pins& pins, PageCache page_cache) {
  std::uint64_t total = 0;
  for (const ByteView& piece : pieces) {
    NACRE_ASSIGN(const auto header, engine::parse_record_header(piece));
    if (header.epoch != epoch) {
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("a record of epoch {} among records of epoch {}", header.epoch, epoch));
    }
    // Each record was sealed here, or was opened before it is moved, so its header is true.
    NACRE_CHECK(header.stored_size == piece.size(), "a record of {} bytes is written as {}",
                header.stored_size, piece.size());
    total += piece.size();
  }
  UniqueLock lock(appender.mutex);
  NACRE_TRY(make_room(appender, total, lock));
  if (epoch != session_->epoch || keys_->is_superseded(epoch)) return false;
  Segment& segment = *appender.segment;
  NACRE_CHECK(segment.open_for_append && segment.epoch == epoch,
              "records of epoch {} are appended to segment {} of epoch {}", epoch,
              segment.number.value, segment.epoch);
  NACRE_ASSIGN(auto file, table_.file(segment));
  if (genuine_.is_active()) {
    // Before any row names the records, so no group has such a row without the digest.
    for (const ByteView& piece : pieces) {
      NACRE_ASSIGN(const auto header, engine::parse_record_header(piece));
      NACRE_TRY(genuine_.note(header, piece));
    }
  }
  std::uint64_t offset = segment.size;
  const bool past_cache = page_cache == PageCache::passed;
  NACRE_TRY(past_cache ? file->write_past_cache(offset, pieces) : file->write(offset, pieces));
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    sealed[i].location =
        RecordLocation{segment.number, offset, static_cast<std::uint32_t>(pieces[i].size())};
    offset += pieces[i].size();
  }
  NACRE_CHECK(segment.size + total == offset, "segment {} was appended to by two at once, at {}",
              segment.number.value, segment.size.load());
  // The order matters: a commit that takes the size then syncs all that it covers.
  segment.written_size = offset;
  segment.unsynced = true;
  segment.size = offset;
  segment.changed = true;
  pins.segments.push_back(appender.segment);
  if (past_cache) appender.written_back = offset;
  if (offset - appender.written_back >= writeback_step_bytes) {
    file->start_writeback(appender.written_back, offset - appender.written_back);
    appender.written_back = offset;
  }
  return true;
}

void SegmentStoreImpl::close_segments() {
  each_appender([&](Appender& appender) {
    if (&appender == &checkpoint_) return;
    LockGuard lock(appender.mutex);
    appender.close(table_);
  });
}

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
