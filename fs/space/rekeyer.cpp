// SPDX-License-Identifier: Apache-2.0
#include "fs/space/rekeyer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "fs/store/segment_table.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

using std::chrono::milliseconds;

namespace {

// Compaction and other work get their turn after this time.
constexpr milliseconds round_time{4000};
// If nothing was read or written for this long, nothing else uses the volume.
constexpr milliseconds alone_after{300};
// A pause is cut into pieces of this length, so that a stop is noticed soon.
constexpr milliseconds look_pause{200};
// A requested rate gets one lane for each multiple of this, with batches to match.
constexpr std::uint64_t rate_of_lane = 64u << 20;

std::chrono::steady_clock::duration time_of(std::uint64_t bytes, std::uint64_t rate) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / static_cast<double>(rate)));
}

unsigned lane_count_of(unsigned asked) {
  const unsigned wanted = asked > 0 ? asked : std::max(4u, std::thread::hardware_concurrency());
  return std::min(wanted, move_lane_count_max);
}

// The memory of all lanes together, at most: two arenas for each (allocate_move_memory()).
constexpr std::uint64_t lane_memory_bytes_max = 96u << 20;

constexpr std::uint64_t memory_of_lane(std::size_t batch_bytes) {
  const std::uint64_t size = std::max(batch_bytes, engine::record_size_bytes_max);
  return 2 * size + size / 4;
}
constexpr unsigned lane_count_within_memory(std::size_t batch_bytes) {
  return static_cast<unsigned>(
      std::max<std::uint64_t>(1, lane_memory_bytes_max / memory_of_lane(batch_bytes)));
}
static_assert(lane_count_within_memory(4u << 20) == 10 && lane_count_within_memory(8u << 20) == 5);

}  // namespace

Rekeyer::Rekeyer(SegmentStore& store, const ChunkMap& map, Committer& committer, RowKeeper& keeper,
                 const RekeyerOptions& options)
    : store_(store),
      map_(map),
      committer_(committer),
      keeper_(keeper),
      options_(options),
      lane_count_max_(std::min(lane_count_of(options.lane_count),
                               lane_count_within_memory(options.batch_bytes))) {}

void Rekeyer::stop() {
  {
    LockGuard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

Result<RekeyReport> Rekeyer::run(const RekeyOrder& order) {
  NACRE_TRY(order.go_on());
  NACRE_TRY(committer_.health());
  const unsigned count = lanes_for(order);
  {
    LockGuard lock(mutex_);
    if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
    failure_ = {};
    commit_failure_ = {};
    emptied_count_ = 0;
    const auto now = Clock::now();
    end_ = now + round_time;
    // A pause that a slower rate asked for does not count any more.
    const auto rate = order.rate_bytes_per_second > 0 ? order.rate_bytes_per_second
                                                      : options_.rate_bytes_per_second;
    next_piece_ = std::min(next_piece_, now + time_of(2 * compaction_batch_bytes, rate));
  }
  while (lanes_.size() < count) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->mover.lane = static_cast<unsigned>(lanes_.size() - 1);
  }
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < count; ++i) {
    threads.emplace_back([this, &lane = *lanes_[i], &order] { run_lane(lane, order); });
  }
  run_lane(*lanes_.front(), order);
  threads.clear();
  const auto committed = finish_commit();
  RekeyReport report;
  {
    LockGuard lock(mutex_);
    NACRE_TRY(failure_);
    report.segment_count = emptied_count_;
  }
  NACRE_TRY(committed);
  report.step = RekeyStep::moved;
  if (report.segment_count > 0) return report;
  NACRE_TRY(commit());  // removes empty segments
  const OutdatedSegments left = store_.outdated();
  report.step = left.count > left.immovable_count ? RekeyStep::waiting : RekeyStep::done;
  if (report.step == RekeyStep::done) lanes_.clear();
  return report;
}

unsigned Rekeyer::lanes_for(const RekeyOrder& order) {
  std::uint64_t count = std::min<std::uint64_t>(lane_count_max_, store_.outdated().count);
  if (order.rate_bytes_per_second > 0) {
    count = std::min(count, order.rate_bytes_per_second / rate_of_lane);
  } else if (!order.at_full_speed) {
    LockGuard lock(mutex_);
    if (!is_alone_locked(Clock::now())) count = 1;
  }
  return static_cast<unsigned>(std::max<std::uint64_t>(count, 1));
}

void Rekeyer::run_lane(Lane& lane, const RekeyOrder& order) {
  const auto worked = empty_segments(lane, order);
  if (worked) return;
  LockGuard lock(mutex_);
  if (failure_) failure_ = worked;
  wake_.notify_all();
}

Result<> Rekeyer::empty_segments(Lane& lane, const RekeyOrder& order) {
  lane.has_left = false;
  if (!lane.memory) {
    NACRE_ASSIGN(auto memory, store_.allocate_move_memory(options_.batch_bytes));
    lane.memory.emplace(std::move(memory));
    lane.mover.memory = &*lane.memory;
  }
  lane.mover.batch_bytes = options_.batch_bytes;
  lane.mover.named_places = order.named_places;
  // Data of a mounted volume may be read soon, so the page cache keeps it.
  lane.mover.page_cache = order.at_full_speed ? PageCache::passed : PageCache::used;
  NACRE_TRY(pause(lane, 0, order));
  while (true) {
    NACRE_ASSIGN(const auto taken, take_segment());
    if (!taken) return {};
    const auto emptied = empty_segment(lane, *taken, order);
    LockGuard lock(mutex_);
    NACRE_CHECK(in_hand_count_ > 0 && in_hand_bytes_ >= taken->live_bytes,
                "{} bytes leave {} bytes of {} segments in hand", taken->live_bytes, in_hand_bytes_,
                in_hand_count_);
    --in_hand_count_;
    in_hand_bytes_ -= taken->live_bytes;
    if (lane.has_left) return {};
    NACRE_TRY(emptied);
    ++emptied_count_;
    if (Clock::now() >= end_) return {};
  }
}

Result<> Rekeyer::empty_segment(Lane& lane, const Taken& taken, const RekeyOrder& order) {
  const auto after_piece = [&](std::uint64_t bytes) -> Result<> {
    NACRE_TRY(note_moved(bytes / 2));  // half of the bytes were written
    return pause(lane, bytes, order);
  };
  const auto compacted =
      compact_segment(store_, map_, keeper_, taken.victim, after_piece, lane.mover);
  // The commit of the interval then frees the emptied segments, even if nothing else changes.
  committer_.note_change();
  if (!compacted) return tl::unexpected(compacted.error());
  note_outcome(store_, taken.victim, *compacted);
  return {};
}

Result<std::optional<Rekeyer::Taken>> Rekeyer::take_segment() {
  LockGuard one(take_mutex_);
  NACRE_ASSIGN(auto victim, store_.find_outdated());
  if (!victim) return std::nullopt;
  Taken taken{.victim = std::move(*victim), .live_bytes = 0};
  const std::int64_t live = taken.victim.segment->live_bytes;
  taken.live_bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(live, 0));
  std::uint64_t in_hand = 0;
  {
    LockGuard lock(mutex_);
    in_hand = in_hand_bytes_;
  }
  if (options_.ballast != nullptr) {
    auto admitted = options_.ballast->admit_move(in_hand + taken.live_bytes);
    if (!admitted && store_.stats().empty_bytes > 0) {
      // A commit frees segments that are empty already.
      NACRE_TRY(commit());
      admitted = options_.ballast->admit_move(in_hand + taken.live_bytes);
    }
    if (!admitted && in_hand > 0) return std::nullopt;  // fewer segments at a time
    NACRE_TRY(admitted);
  }
  LockGuard lock(mutex_);
  ++in_hand_count_;
  in_hand_bytes_ += taken.live_bytes;
  return taken;
}

bool Rekeyer::is_alone_locked(Clock::time_point now) {
  const std::uint64_t activity = store_.activity();
  if (std::exchange(seen_activity_, activity) != activity) alone_from_ = now + alone_after;
  return now >= alone_from_;
}

// Sleeps shortly after each piece of work, unless nothing else uses the volume.
Result<> Rekeyer::pause(Lane& lane, std::uint64_t bytes, const RekeyOrder& order) {
  NACRE_TRY(order.go_on());
  NACRE_TRY(committer_.health());
  const bool is_first = lane.mover.lane == 0;
  if (is_first && order.progress) order.progress();
  const auto leave = [&] {
    lane.has_left = true;
    return fail(ErrorCode::cancelled, "goes on later");
  };
  UniqueLock lock(mutex_);
  if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
  if (!failure_) return leave();
  const auto now = Clock::now();
  const bool is_alone = is_alone_locked(now) || order.at_full_speed;
  std::uint64_t rate = order.rate_bytes_per_second;
  if (rate == 0 && !is_alone) {
    if (!is_first) return leave();
    rate = options_.rate_bytes_per_second;
  }
  lane.mover.batch_bytes =
      rate > 0 && rate < rate_of_lane ? compaction_batch_bytes : options_.batch_bytes;
  if (rate == 0) return {};
  next_piece_ = std::max(next_piece_, now) + time_of(bytes, rate);
  const auto until = next_piece_;
  while (Clock::now() < until) {
    wake_.wait_until(lock, std::min(until, Clock::now() + look_pause),
                     [&]() NACRE_REQUIRES(mutex_) { return stopping_ || !failure_; });
    if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
    if (!failure_) return leave();
    lock.unlock();
    NACRE_TRY(order.go_on());
    lock.lock();
  }
  return {};
}

// A commit makes moved bytes durable while the next pieces are being moved. No lane may be further
// ahead of the commit than the bound. Each working lane adds its share to the bound; otherwise all
// lanes would wait for the disk in turn.
Result<> Rekeyer::note_moved(std::uint64_t bytes) {
  UniqueLock lock(mutex_);
  uncommitted_bytes_ += bytes;
  const auto is_below = [&]() NACRE_REQUIRES(mutex_) {
    return uncommitted_bytes_ <
           options_.uncommitted_bytes_max * std::max<std::uint64_t>(in_hand_count_, 1);
  };
  if (is_below()) return {};
  wake_.wait(lock, [&]() NACRE_REQUIRES(mutex_) { return !is_committing_; });
  NACRE_TRY(commit_failure_);
  if (is_below()) return {};  // another lane has committed
  uncommitted_bytes_ = 0;
  is_committing_ = true;
  lock.unlock();
  committer_.request(CommitScope{}, [this](const Result<>& committed) {
    LockGuard done(mutex_);
    is_committing_ = false;
    if (!committed) commit_failure_ = committed;
    wake_.notify_all();
  });
  return {};
}

Result<> Rekeyer::finish_commit() {
  UniqueLock lock(mutex_);
  wake_.wait(lock, [&]() NACRE_REQUIRES(mutex_) { return !is_committing_; });
  return commit_failure_;
}

Result<> Rekeyer::commit() {
  {
    LockGuard lock(mutex_);
    uncommitted_bytes_ = 0;
  }
  return committer_.commit(CommitScope{});
}

}  // namespace nacre::fs
