// SPDX-License-Identifier: Apache-2.0
#include "fs/checkpoint/checkpointer.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace nacre::fs {

using metadata::CheckpointNumber;
using metadata::CheckpointRow;
using metadata::Table;
using std::chrono::steady_clock;

namespace {

constexpr int background_nice = 10;
// Free bytes that the disk must have before each part: twice what is written between two looks.
constexpr std::uint64_t margin_bytes = 4u << 20;
constexpr steady_clock::duration pause_max = std::chrono::seconds(1);

}  // namespace

// The durable rows, and the version up to which the records belong to them.
struct Checkpointer::Moment {
  std::unique_ptr<metadata::CommittedView> view;
  RecordVersion settled;
};

struct Checkpointer::Kept {
  CheckpointNumber number;
  CheckpointRow row;
};

Checkpointer::Checkpointer(metadata::BackingDirectory& directory, metadata::Database& database,
                           SegmentStore& store, Committer& committer, Ballast& ballast,
                           const CheckpointOptions& options)
    : directory_(directory),
      database_(database),
      store_(store),
      committer_(committer),
      ballast_(ballast),
      options_(options) {
  stats_.state = "off";
}

Checkpointer::~Checkpointer() {
  stop();
}

std::uint64_t Checkpointer::session() const {
  return store_.session_ordinal();
}

Result<> Checkpointer::start() {
  if (options_.interval_ms == 0) return {};
  NACRE_ASSIGN(const auto earlier, kept());
  changed_ = earlier.empty() || earlier.back().row.closed_session + 1 != session();
  is_started_ = true;
  LockGuard lock(mutex_);
  stats_.state = "idle";
  thread_ = std::thread([this] { run(); });
  return {};
}

void Checkpointer::stop() {
  {
    LockGuard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  LockGuard last(run_mutex_);  // a write() that was under way has ended
}

CheckpointStats Checkpointer::stats() const {
  LockGuard lock(mutex_);
  return stats_;
}

void Checkpointer::run() {
  // The lower priority holds for this thread alone; work for users goes first.
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, background_nice));
  const auto interval = std::chrono::milliseconds(options_.interval_ms);
  UniqueLock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [&]() NACRE_REQUIRES(mutex_) { return stopping_; })) {
    if (!changed_) continue;
    lock.unlock();
    {
      LockGuard one(run_mutex_);
      const auto written = write_one(CheckpointKeep::the_one_before, /*is_paced=*/true, false);
      if (!written) note_failure(written.error());
    }
    lock.lock();
  }
}

Result<CheckpointReport> Checkpointer::write(CheckpointKeep keep) {
  LockGuard one(run_mutex_);
  auto written = write_one(keep, /*is_paced=*/false, false);
  if (!written) note_failure(written.error());
  return written;
}

void Checkpointer::write_last() {
  if (!is_started_) return;
  LockGuard one(run_mutex_);
  {
    LockGuard lock(mutex_);
    stopping_ = false;  // it was set to end the background thread, which has ended
  }
  const auto written = write_one(CheckpointKeep::the_one_before, /*is_paced=*/false, true);
  if (!written) note_failure(written.error());
}

Result<CheckpointReport> Checkpointer::write_one(CheckpointKeep keep, bool is_paced, bool is_last) {
  {
    LockGuard lock(mutex_);
    if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
    stats_.state = "working";
  }
  const auto begin = steady_clock::now();
  NACRE_TRY(admit(0));
  // If the earlier checkpoints must go, this one is written even past its share of the disk:
  // otherwise they would stay for ever.
  bool may_outgrow_share = false;
  if (keep == CheckpointKeep::only_this) {
    NACRE_ASSIGN(const auto earlier, kept());
    may_outgrow_share = !earlier.empty();
  }
  NACRE_ASSIGN(const Moment moment, take_view(is_last));
  if (!moment.view) {
    NACRE_TRY(mark_closed());
    return CheckpointReport{};
  }
  std::uint64_t stored = 0;
  auto worked_since = begin;
  const Pace pace = [&](std::uint64_t bytes) -> Result<> {
    stored += bytes;
    const auto admitted = admit(stored);
    if (!admitted && !(may_outgrow_share && admitted.error().code == ErrorCode::too_big)) {
      return admitted;
    }
    const auto worked = is_paced ? steady_clock::now() - worked_since : steady_clock::duration{};
    NACRE_TRY(pause_as_long_as(worked));
    worked_since = steady_clock::now();
    return {};
  };
  auto made = write_checkpoint_records(store_, *moment.view, moment.settled, pace);
  store_.close_checkpoint();
  Result<> installed = made ? install(*made, keep, is_last) : tl::unexpected(made.error());
  if (made) made->pins.clear();
  committer_.note_change();  // the next commit frees records that no row names
  if (installed) installed = committer_.commit(CommitScope{});
  if (!installed) {
    changed_ = true;
    return tl::unexpected(installed.error());
  }
  const auto took = steady_clock::now() - begin;
  const auto& counts = made->root.row_counts;
  const CheckpointReport report{
      .number = made->number,
      .row_count = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}),
      .plain_bytes = made->root.stream_size,
      .stored_bytes = made->stored_bytes,
      .took_ms = static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(took).count())};
  spdlog::info("checkpoint of {} rows: {} bytes in {} ms", report.row_count, report.stored_bytes,
               report.took_ms);
  LockGuard lock(mutex_);
  stats_.state = "idle";
  last_failure_.clear();
  stats_.last = report;
  ++stats_.written_count;
  return report;
}

Result<Checkpointer::Moment> Checkpointer::take_view(bool only_if_changed) {
  std::promise<Result<Moment>> promise;
  // The view is taken on the commit thread, so that no commit comes between it and the version.
  committer_.request(CommitScope{.everything = true}, [&](const Result<>& committed) {
    if (!committed) return promise.set_value(tl::unexpected(committed.error()));
    Moment moment{.view = nullptr, .settled = store_.settled_version()};
    if (changed_.exchange(false) || !only_if_changed) moment.view = database_.committed_view();
    promise.set_value(std::move(moment));
  });
  return promise.get_future().get();
}

Result<> Checkpointer::install(const CheckpointRecords& made, CheckpointKeep keep, bool is_last) {
  CheckpointRow row = made.row;
  if (is_last) row.closed_session = session();
  const auto operation = committer_.begin_operation();
  NACRE_ASSIGN(auto earlier, kept());
  database_.put_new(Table::system, metadata::checkpoint_key(made.number), encode(row));
  store_.add_live(row.root.location);
  for (const auto& part : row.parts)
    store_.add_live(part.location);
  if (keep == CheckpointKeep::the_one_before && !earlier.empty()) earlier.pop_back();
  for (const Kept& old : earlier)
    release(old);
  return {};
}

// Nothing changed since the last checkpoint: its row notes that, for the next mount.
Result<> Checkpointer::mark_closed() {
  {
    const auto operation = committer_.begin_operation();
    NACRE_ASSIGN(auto earlier, kept());
    if (earlier.empty()) return {};
    earlier.back().row.closed_session = session();
    database_.put(Table::system, metadata::checkpoint_key(earlier.back().number),
                  encode(earlier.back().row));
  }
  committer_.note_change();
  return committer_.commit(CommitScope{});
}

Result<std::vector<Checkpointer::Kept>> Checkpointer::kept() const {
  std::vector<Kept> all;
  Result<> bad;
  const std::string_view prefix = metadata::system_key_checkpoint_prefix;
  NACRE_TRY(database_.scan(Table::system, prefix, metadata::prefix_end(prefix),
                           [&](std::string_view key, std::string_view value) {
                             const auto number = metadata::decode_checkpoint_key(key);
                             auto row = metadata::decode_checkpoint_row(value);
                             if (!number || !row) {
                               bad = tl::unexpected(number ? row.error() : number.error());
                               return false;
                             }
                             all.push_back(Kept{*number, std::move(*row)});
                             return true;
                           }));
  NACRE_TRY(bad);
  return all;
}

void Checkpointer::release(const Kept& old) {
  database_.erase(Table::system, metadata::checkpoint_key(old.number));
  store_.remove_live(old.row.root.location);
  for (const auto& part : old.row.parts)
    store_.remove_live(part.location);
}

Result<> Checkpointer::admit(std::uint64_t written_bytes) const {
  NACRE_ASSIGN(const auto space, directory_.space());
  if (ballast_.room(space, 0) < margin_bytes) {
    return fail(ErrorCode::no_space, "the disk has no room for a checkpoint");
  }
  if (written_bytes > space.total_bytes / options_.disk_share) {
    return fail(
        ErrorCode::too_big,
        fmt::format("a checkpoint would take more than a {}th of the disk", options_.disk_share));
  }
  return {};
}

Result<> Checkpointer::pause_as_long_as(steady_clock::duration worked) {
  UniqueLock lock(mutex_);
  if (worked > worked.zero()) {
    wake_.wait_for(lock, std::min(worked, pause_max),
                   [&]() NACRE_REQUIRES(mutex_) { return stopping_; });
  }
  if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
  return {};
}

// The log has each failure once, not once an interval while a disk stays full.
void Checkpointer::note_failure(const Error& error) {
  const std::string why =
      error.message.empty() ? std::string(to_string(error.code)) : error.message;
  LockGuard lock(mutex_);
  stats_.state = why;
  if (error.code == ErrorCode::cancelled || std::exchange(last_failure_, why) == why) return;
  spdlog::warn("no checkpoint of the tables was written: {}; the last one stays as it is", why);
}

}  // namespace nacre::fs
