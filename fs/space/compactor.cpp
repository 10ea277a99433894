// SPDX-License-Identifier: Apache-2.0
#include "fs/space/compactor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/space/room_bound.h"
#include "fs/store/patched_chunk.h"
#include "fs/store/segment_table.h"

namespace nacre::fs {

using metadata::Table;
using std::chrono::milliseconds;

namespace {

// The background thread looks at the counts at most once in this time.
constexpr milliseconds compactor_look_pause{200};
// The pause after no_space or out_of_memory. It is doubled each time.
constexpr milliseconds retry_pause_min{1000};
constexpr milliseconds retry_pause_max{60'000};
// The disk's free space is asked for at most once in this time.
constexpr milliseconds free_space_counts_for{500};
// At least this many bytes are written before a writer looks at the bound.
constexpr std::uint64_t look_bytes_min = 64u << 10;
// The speed is rate * (1 + slope * pressure), without a limit past the last pressure. The pressure
// is the share by which dead bytes exceed the allowed number.
constexpr double rate_slope = 8;
constexpr double pressure_without_limit = 1;
// The number of chunks that one scan of a table finds, and of rows that one scan of chunks reads.
constexpr std::size_t tidy_batch_count = 256;
constexpr std::size_t look_row_count = 4096;

// If more than this is free, there is room for new data in any case.
constexpr std::uint64_t plenty_bytes = 2 * RoomBound::bytes_max;

// Asks the disk for its free space.
RoomBound room_bound(const CompactorOptions& options, const SegmentStats& stats) {
  if (options.directory == nullptr || options.ballast == nullptr) return {};
  const auto space = options.directory->space();
  if (!space) return {};
  return room_bound_of(stats, options.ballast->room(*space, 0), space->total_bytes);
}

bool may_pass(ErrorCode code) {
  return code == ErrorCode::no_space || code == ErrorCode::out_of_memory;
}

struct Look {
  std::vector<std::pair<InodeNumber, ChunkIndex>> chunks;
  std::uint64_t bytes = 0;  // size of the rows that were read
  std::string next;         // the key to go on from; empty: the scan is done
};

// Rows that cannot be decoded are passed over; fsck.nacre reports them.
Result<Look> find_worth_merging(const metadata::Database& database, const std::string& from) {
  Look look;
  std::size_t count = 0;
  NACRE_TRY(
      database.scan(Table::chunks, from, "", [&](std::string_view key, std::string_view value) {
        if (count == look_row_count || look.chunks.size() == tidy_batch_count) {
          look.next = key;
          return false;
        }
        ++count;
        look.bytes += key.size() + value.size();
        const auto parts = metadata::decode_chunk_key(key);
        const auto row = metadata::decode_chunk_map_row(value);
        if (parts && row && row->chunk && is_worth_merging(*row->chunk)) {
          look.chunks.emplace_back(parts->inode, parts->index);
        }
        return true;
      }));
  return look;
}

}  // namespace

Compactor::Compactor(metadata::Database& database, SegmentStore& store, const ChunkMap& map,
                     Committer& committer, RowKeeper& keeper, const CompactorOptions& options)
    : database_(database),
      store_(store),
      map_(map),
      committer_(committer),
      keeper_(keeper),
      options_(options),
      rekeyer_(store, map, committer, keeper,
               {.rate_bytes_per_second = options.rate_bytes_per_second,
                .uncommitted_bytes_max = options.uncommitted_bytes_max,
                .batch_bytes = options.rekey_batch_bytes,
                .lane_count = options.rekey_lane_count,
                .ballast = options.ballast}),
      pacer_(options.pacing, [this](std::uint64_t bytes) { note_written(bytes); }),
      free_space_(
          [directory = options.directory] {
            const auto space = directory->space();
            return space ? space->available_bytes : 0;
          },
          free_space_counts_for) {
  stats_.state = "off";
}

Compactor::~Compactor() {
  stop();
}

void Compactor::start() {
  set_state("idle");
  has_background_ = true;
  hopeless_dead_bytes_ = 0;
  thread_ = std::thread([this] { run_background(); });
}

void Compactor::stop() {
  {
    LockGuard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  pacer_.stop();
  rekeyer_.stop();
  if (thread_.joinable()) thread_.join();
  LockGuard last(run_mutex_);  // a run that was under way has ended
}

void Compactor::wake() {
  {
    LockGuard lock(mutex_);
    if (woken_) return;
    woken_ = true;
  }
  wake_.notify_all();
}

CompactorStats Compactor::stats() const {
  CompactorStats stats;
  {
    LockGuard lock(mutex_);
    stats = stats_;
  }
  stats.writers = pacer_.stats();
  return stats;
}

void Compactor::set_state(std::string state) {
  LockGuard lock(mutex_);
  stats_.state = std::move(state);
}

SpaceBound Compactor::bound() {
  const SegmentStats stats = store_.stats();
  if (options_.directory == nullptr) return space_bound_of(stats, 0, options_.bound);
  const std::uint64_t free_bytes = free_space_.bytes(stats.appended_bytes + stats.moved_bytes);
  const SpaceBound bound = space_bound_of(stats, free_bytes, options_.bound);
  if (free_bytes >= plenty_bytes || stats.reclaimable_bytes == 0) return bound;
  return room_bound(options_, stats).applied_to(bound);
}

void Compactor::hold_or_let_go(const SpaceBound& bound) {
  unseen_bytes_ = 0;
  const auto is_due = [&] {
    return bound.overrun() > 0 && bound.dead_bytes > hopeless_dead_bytes_;
  };
  if (is_due()) pacer_.engage(bound.overrun());
  // is_due() is asked last, because code that changes its result disengages the pacer afterwards.
  if (!is_due()) pacer_.disengage();
}

std::uint64_t Compactor::look_bytes() const {
  return std::max(options_.bound.slack_bytes_min / 4, look_bytes_min);
}

void Compactor::note_written(std::uint64_t bytes) {
  // The writer looks at the bound itself, because the background thread may get no time for a
  // while.
  if ((unseen_bytes_ += bytes) >= look_bytes() && !pacer_.is_engaged() && has_background_) {
    hold_or_let_go(bound());
    if (pacer_.is_engaged()) {
      wake();
      wake_.notify_all();  // also ends a short sleep
    }
  }
}

// Sleeps until something was committed. Then it works, and once more when the volume has been idle
// for a while.
void Compactor::run_background() {
  milliseconds retry_pause = retry_pause_min;
  bool may_tidy = false;  // something was committed since the last idle moment
  bool is_blocked = false;
  UniqueLock lock(mutex_);
  while (true) {
    const auto is_due = [&]()
                            NACRE_REQUIRES(mutex_) { return stopping_ || (woken_ && !is_blocked); };
    const std::uint64_t activity = store_.activity();
    if (is_blocked) {
      wake_.wait_for(lock, retry_pause, is_due);
    } else if (may_tidy) {
      wake_.wait_for(lock, options_.idle_after, is_due);
    } else {
      wake_.wait(lock, is_due);
    }
    if (stopping_) return;
    const bool is_idle = !woken_ && store_.activity() == activity;
    may_tidy = woken_ || !is_idle;
    woken_ = false;
    stats_.state = "working";
    lock.unlock();

    const auto done = do_what_is_due(is_idle);
    lock.lock();
    stats_.state = "idle";
    if (done) {
      if (is_blocked) spdlog::info("compaction goes on");
      is_blocked = false;
      retry_pause = retry_pause_min;
    } else if (may_pass(done.error().code)) {
      if (!is_blocked) spdlog::info("compaction waits: {}", done.error().message);
      stats_.state = "waiting for space";
      if (is_blocked) retry_pause = std::min(2 * retry_pause, retry_pause_max);
      is_blocked = true;
    } else if (done.error().code != ErrorCode::cancelled) {
      spdlog::error("compaction stops until the next mount: {} ({})", done.error().message,
                    to_string(done.error().code));
      stats_.state = fmt::format("stopped: {}", done.error().message);
      return;
    }
    wake_.wait_for(lock, compactor_look_pause, [&]() NACRE_REQUIRES(mutex_) {
      return stopping_ || (woken_ && pacer_.is_engaged());
    });
  }
}

Result<> Compactor::do_what_is_due(bool is_idle) {
  LockGuard one(run_mutex_);
  const auto done = clean_up(is_idle);
  if (!done) {
    hopeless_dead_bytes_ = all_hopeless;
    pacer_.disengage();
    if (!may_pass(done.error().code)) has_background_ = false;
  }
  return done;
}

Result<> Compactor::clean_up(bool is_idle) {
  CompactionReport report;
  NACRE_TRY(reach_bound(Speed::paced, report));
  // Records that die from here on wait for the next time, and no writer waits for them.
  const NotCleaning for_now(*this);
  const std::uint64_t inlined = keeper_.inlined_bytes();
  const bool is_much = inlined - tidied_inlined_bytes_ > options_.inlined_bytes_max;
  // Inlined bytes and patches that an earlier mount left are looked for once.
  if (is_much || (is_idle && (inlined != tidied_inlined_bytes_ || !tidied_once_))) {
    NACRE_TRY(tidy_inlined(Speed::paced));
  }
  if (!is_idle) return {};
  NACRE_TRY(tidy_patched(Speed::paced));
  return join_small(Speed::paced, report);
}

Result<> Compactor::reach_bound(Speed speed, CompactionReport& report) {
  is_reaching_bound_ = true;
  const auto reach = [&]() NACRE_REQUIRES(run_mutex_) -> Result<bool> {
    for (SpaceBound now = bound(); now.excess_bytes > 0; now = bound()) {
      // If a segment is fuller than the bound allows on average, emptying it costs more than it
      // gives. On a full disk it is emptied all the same, because there is no other room.
      const bool is_full = room_bound(options_, store_.stats()).missing_bytes > 0;
      const double live_share_max =
          is_full ? 1 - reclaimable_share_min : 1 / options_.bound.space_ratio;
      NACRE_ASSIGN(bool done, compact_one(live_share_max, speed, report));
      if (!done && now.excess_bytes >= static_cast<double>(options_.open_dead_bytes_min)) {
        // The dead bytes can only lie in the segments that are being filled.
        store_.close_segments();
        committer_.note_change();  // a commit removes a segment without live bytes
        NACRE_ASSIGN(done, compact_one(live_share_max, speed, report));
      }
      if (!done) return false;
    }
    return true;
  };
  const auto reached = reach();
  is_reaching_bound_ = false;
  if (!reached) return tl::unexpected(reached.error());
  // Dead bytes that cannot be freed now hold up no writer. Bytes that die from now on may be freed.
  if (!has_background_) {
    hopeless_dead_bytes_ = all_hopeless;
  } else {
    hopeless_dead_bytes_ = *reached ? 0 : store_.stats().movable_dead_bytes + look_bytes();
  }
  pacer_.disengage();
  return {};
}

Result<bool> Compactor::compact_one(double live_share_max, Speed speed, CompactionReport& report) {
  NACRE_TRY(pace(0, speed));
  NACRE_ASSIGN(const auto victim, store_.find_victim(live_share_max));
  if (!victim) return false;
  NACRE_TRY(rewrite(*victim, report, [&](std::uint64_t bytes) NACRE_REQUIRES(run_mutex_) {
    return pace(bytes, speed);
  }));
  return true;
}

// Once there are too many small segments, all of them are joined, so that none is moved repeatedly.
Result<> Compactor::join_small(Speed speed, CompactionReport& report) {
  std::size_t count_max = options_.small_segment_count_max;
  for (std::uint64_t left = store_.stats().segment_count; left > 0; --left) {
    NACRE_TRY(pace(0, speed));
    NACRE_ASSIGN(const auto victim, store_.find_small_victim(count_max));
    if (!victim) break;
    count_max = 0;
    NACRE_TRY(rewrite(*victim, report, [&](std::uint64_t bytes) NACRE_REQUIRES(run_mutex_) {
      return pace(bytes, speed);
    }));
  }
  return {};
}

Result<> Compactor::rewrite(const Victim& victim, CompactionReport& report, const Pace& pause) {
  NACRE_TRY(admit(victim));
  std::uint64_t moved_before = store_.stats().moved_bytes;
  const auto after_piece = [&](std::uint64_t bytes) NACRE_REQUIRES(run_mutex_) -> Result<> {
    const SegmentStats now = store_.stats();
    const std::uint64_t moved = now.moved_bytes - std::exchange(moved_before, now.moved_bytes);
    report.moved_bytes += moved;
    // Live bytes count twice, because they were read and appended.
    pacer_.note_cleaned(bytes - std::min(bytes, 2 * moved));
    NACRE_TRY(commit_now_and_then(moved, now.empty_bytes));
    return pause(bytes);
  };
  Mover mover;
  const auto compacted = compact_segment(store_, map_, keeper_, victim, after_piece, mover);
  if (!compacted) return tl::unexpected(compacted.error());
  if (note_outcome(store_, victim, *compacted)) ++report.immovable_count;
  // The commit of the interval then frees the emptied segments, even if nothing else changes.
  committer_.note_change();
  ++report.segment_count;
  LockGuard lock(mutex_);
  ++stats_.segment_count;
  return {};
}

Result<RekeyStep> Compactor::rekey(const RekeyOrder& order) {
  LockGuard one(run_mutex_);
  const NotCleaning for_now(*this);
  const auto report = rekeyer_.run(order);
  if (!report) return tl::unexpected(report.error());
  LockGuard lock(mutex_);
  stats_.segment_count += report->segment_count;
  return report->step;
}

Result<> Compactor::commit_now_and_then(std::uint64_t moved_bytes, std::uint64_t empty_bytes) {
  uncommitted_bytes_ += moved_bytes;
  // While writers are held back, segments that their own writes emptied do not wait for the
  // interval.
  const std::uint64_t waiting_bytes =
      pacer_.is_engaged() ? std::max(uncommitted_bytes_, empty_bytes) : uncommitted_bytes_;
  return waiting_bytes < options_.uncommitted_bytes_max ? Result<>() : commit_moves();
}

Result<> Compactor::commit_moves() {
  uncommitted_bytes_ = 0;
  return committer_.commit(CommitScope{});
}

Result<> Compactor::admit(const Victim& victim) {
  if (options_.ballast == nullptr) return {};
  const auto live =
      static_cast<std::uint64_t>(std::max<std::int64_t>(victim.segment->live_bytes, 0));
  const auto admitted = options_.ballast->admit_move(live);
  if (admitted || store_.stats().empty_bytes == 0) return admitted;
  // A commit frees segments that are empty already.
  NACRE_TRY(commit_moves());
  return options_.ballast->admit_move(live);
}

// Sleeps shortly after each piece of work, unless nothing else uses the volume.
Result<> Compactor::pace(std::uint64_t bytes, Speed speed) {
  NACRE_TRY(committer_.health());
  const std::uint64_t activity = store_.activity();
  const bool is_alone = std::exchange(seen_activity_, activity) == activity;
  milliseconds pause{0};
  const SpaceBound now = bound();
  if (is_reaching_bound_) hold_or_let_go(now);
  if (speed == Speed::paced && !is_alone && bytes > 0 && !pacer_.is_engaged()) {
    const double pressure = now.pressure();
    const double rate =
        static_cast<double>(options_.rate_bytes_per_second) * (1 + rate_slope * pressure);
    if (pressure < pressure_without_limit) {
      pause = milliseconds(static_cast<std::int64_t>(1000 * static_cast<double>(bytes) / rate));
    }
  }
  UniqueLock lock(mutex_);
  if (pause.count() > 0)
    wake_.wait_for(lock, pause, [&]() NACRE_REQUIRES(mutex_) { return stopping_; });
  if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
  return {};
}

// The table names exactly the chunks that have inlined patches.
Result<> Compactor::tidy_inlined(Speed speed) {
  const std::uint64_t inlined = keeper_.inlined_bytes();
  std::string from;
  while (true) {
    std::vector<std::pair<InodeNumber, ChunkIndex>> chunks;
    Result<> bad;
    NACRE_TRY(database_.scan(Table::inlined, from, "", [&](std::string_view key, std::string_view) {
      const auto parts = metadata::decode_inlined_key(key);
      if (!parts) {
        bad = tl::unexpected(parts.error());
        return false;
      }
      const std::pair chunk(parts->inode, parts->index);
      if (!chunks.empty() && chunks.back() == chunk) return true;
      if (chunks.size() == tidy_batch_count) return false;
      chunks.push_back(chunk);
      return true;
    }));
    NACRE_TRY(bad);
    if (chunks.empty()) break;
    for (const auto& [inode, index] : chunks)
      NACRE_TRY(tidy(inode, index, speed));
    const auto& [inode, index] = chunks.back();
    from = metadata::inlined_key(inode, ChunkIndex{index.value + 1}, {}, 0);
  }
  tidied_inlined_bytes_ = inlined;
  return {};
}

Result<> Compactor::tidy_patched(Speed speed) {
  const auto noted = keeper_.take_patched_chunks();
  const bool looks_for_all = speed == Speed::full || !tidied_once_ || !noted.are_all;
  tidied_once_ = false;  // after an error the noted chunks must be found again, too
  if (looks_for_all) {
    std::string from;
    do {
      NACRE_ASSIGN(Look look, find_worth_merging(database_, from));
      for (const auto& [inode, index] : look.chunks)
        NACRE_TRY(tidy(inode, index, speed));
      NACRE_TRY(pace(look.bytes, speed));
      from = std::move(look.next);
    } while (!from.empty());
  } else {
    for (const auto& [inode, index] : noted.chunks)
      NACRE_TRY(tidy(inode, index, speed));
  }
  tidied_once_ = true;
  return {};
}

Result<> Compactor::tidy(InodeNumber inode, ChunkIndex index, Speed speed) {
  const auto tidied = keeper_.tidy_chunk(inode, index);
  // A chunk that is gone or cannot be read is passed over; a reader of it gets the error.
  if (!tidied && may_pass(tidied.error().code)) return tidied;
  return pace(map_.chunk_size_bytes(), speed);
}

Result<CompactionReport> Compactor::run(CompactionGoal goal, const CompactionProgress& progress) {
  LockGuard one(run_mutex_);
  CompactionReport report;
  const SegmentStats before = store_.stats();
  if (goal == CompactionGoal::space_ratio) {
    NACRE_TRY(reach_bound(Speed::full, report));
  } else {
    const NotCleaning for_now(*this);
    // Dirty data is committed first, because it may replace records that would otherwise be moved.
    NACRE_TRY(committer_.commit(CommitScope{.everything = true}));
    NACRE_TRY(tidy_inlined(Speed::full));
    NACRE_TRY(tidy_patched(Speed::full));
    store_.close_segments();
    const SegmentStats closed = store_.stats();
    // Writers may go on in the meantime. Dead records that they leave are not part of this run.
    for (std::uint64_t left = closed.segment_count; left > 0; --left) {
      if (progress) {
        const std::uint64_t now = store_.stats().reclaimable_bytes;
        progress(closed.reclaimable_bytes - std::min(closed.reclaimable_bytes, now),
                 closed.reclaimable_bytes);
      }
      NACRE_ASSIGN(const bool done, compact_one(1 - reclaimable_share_min, Speed::full, report));
      if (!done) break;
    }
    NACRE_TRY(join_small(Speed::full, report));
  }
  // The commit removes empty segments. A second one removes those that readers still used.
  NACRE_TRY(committer_.commit(CommitScope{.everything = true}));
  const SegmentStats after = store_.stats();
  const std::uint64_t grown = before.stored_bytes + (after.appended_bytes - before.appended_bytes);
  report.freed_bytes = grown - std::min(grown, after.stored_bytes);
  return report;
}

}  // namespace nacre::fs
