// SPDX-License-Identifier: Apache-2.0
// The states of the scrub, the commands that change them, and its thread.
#include "fs/scrub/scrubber.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/check/finding.h"

namespace nacre::fs {

using metadata::ScrubRow;
using metadata::ScrubState;
using metadata::Table;

namespace {

constexpr std::array<std::string_view, 5> command_names = {"begin", "pause", "resume", "stop",
                                                           "status"};
// While users read or write, each scrubbed byte counts as this many.
constexpr std::uint64_t busy_cost = 4;
constexpr std::chrono::milliseconds busy_pause_max{1000};

bool is_under_way(ScrubState state) {
  return state == ScrubState::running || state == ScrubState::paused;
}

}  // namespace

std::optional<ScrubCommand> scrub_command_of(std::string_view name) {
  const auto found = std::find(command_names.begin(), command_names.end(), name);
  if (found == command_names.end()) return std::nullopt;
  return static_cast<ScrubCommand>(found - command_names.begin());
}

std::string_view to_string(ScrubCommand command) {
  return command_names[static_cast<std::size_t>(command)];
}

Scrubber::Scrubber(Mounted& mounted, const engine::VolumeId& volume_id, ScrubberOptions options)
    : mounted_(mounted),
      volume_id_(volume_id),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : std::make_shared<ScrubClock>()) {}

Scrubber::~Scrubber() {
  close();
}

void Scrubber::start() {
  const auto value = mounted_.database().get(Table::system, metadata::system_key_scrub);
  if (!value) {
    spdlog::warn("what the last scrub did cannot be read: {}", value.error().message);
  } else if (*value) {
    auto row = metadata::decode_scrub_row(**value);
    if (row) {
      LockGuard lock(mutex_);
      row_ = std::move(*row);
    } else {
      spdlog::warn("what the last scrub did cannot be read: {}", row.error().message);
    }
  }
  if (status().state == ScrubState::running) spdlog::info("the scrub goes on where it was");
  thread_ = std::thread([this] { run(); });
}

void Scrubber::close() {
  {
    LockGuard lock(mutex_);
    if (std::exchange(closing_, true)) return;
  }
  wake_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  // If the volume takes no more changes, it has logged that already.
  if (is_under_way(status().state)) static_cast<void>(save(false));
}

ScrubRow Scrubber::status() const {
  LockGuard lock(mutex_);
  return row_;
}

bool Scrubber::wait_until_idle(std::chrono::milliseconds time) {
  UniqueLock lock(mutex_);
  return wake_.wait_for(lock, time, [&]() NACRE_REQUIRES(mutex_) {
    return row_.state != ScrubState::running && !is_working_;
  });
}

Result<ScrubRow> Scrubber::make_new(std::uint64_t rate) const {
  const ScrubRow before = status();
  ScrubRow row{.state = ScrubState::running,
               .rate_bytes_per_second = rate,
               .started_seconds = std::time(nullptr),
               .previous_ended_seconds = before.previous_ended_seconds,
               .previous_damage_count = before.previous_damage_count};
  if (before.state == ScrubState::finished) {
    row.previous_ended_seconds = before.ended_seconds;
    row.previous_damage_count = before.damage_count;
  }
  NACRE_TRY(mounted_.database().scan(Table::segments, "", "",
                                     [&](std::string_view key, std::string_view value) {
                                       const auto number = metadata::decode_segment_key(key);
                                       const auto segment = metadata::decode_segment_row(value);
                                       if (number) row.last_segment = *number;
                                       if (segment) row.total_bytes += segment->committed_size;
                                       return true;
                                     }));
  NACRE_ASSIGN(const auto files, mounted_.database().needed_files());
  for (const auto& name : files) {
    if (const auto size = mounted_.directory().file_size("db/" + name)) row.total_bytes += *size;
  }
  return row;
}

Result<ScrubRow> Scrubber::apply(ScrubCommand command, std::optional<std::uint64_t> rate) {
  if (command == ScrubCommand::status) return status();
  LockGuard one(apply_mutex_);
  std::optional<ScrubRow> fresh;
  if (command == ScrubCommand::begin && !is_under_way(status().state)) {
    NACRE_ASSIGN(fresh, make_new(rate.value_or(options_.rate_bytes_per_second)));
  }
  {
    LockGuard lock(mutex_);
    if (closing_) return fail(ErrorCode::cancelled, "the volume is closing");
    if (fresh) {
      row_ = std::move(*fresh);
      ++ordinal_;
    } else if (command == ScrubCommand::begin && !is_under_way(row_.state)) {
      // The scrub has ended in the meantime; its result is the answer.
      return row_;
    } else if (!is_under_way(row_.state)) {
      return fail(ErrorCode::not_found,
                  fmt::format("there is no scrub to {}: none is under way", to_string(command)));
    } else if (command == ScrubCommand::pause) {
      row_.state = ScrubState::paused;
    } else if (command == ScrubCommand::stop) {
      row_.state = ScrubState::stopped;
      row_.ended_seconds = std::time(nullptr);
    } else {
      row_.state = ScrubState::running;
      if (rate) row_.rate_bytes_per_second = *rate;
    }
  }
  wake_.notify_all();
  NACRE_TRY(save(true));
  return status();
}

bool Scrubber::is_wanted() const {
  return !closing_ && row_.state == ScrubState::running && ordinal_ == pass_ordinal_;
}

Result<> Scrubber::change(const std::function<void(ScrubRow&)>& change) {
  LockGuard lock(mutex_);
  if (!is_wanted()) return fail(ErrorCode::cancelled, "the scrub was paused or stopped");
  change(row_);
  return {};
}

Result<> Scrubber::save(bool at_once) {
  LockGuard saving(save_mutex_);
  if (mounted_.is_read_only()) return {};
  return mounted_.put_system_row(metadata::system_key_scrub, metadata::encode(status()), at_once);
}

void Scrubber::save_if_due() {
  const auto now = clock_->now();
  if (now - saved_at_ < options_.save_interval) return;
  saved_at_ = now;
  // If the volume takes no changes, the place is not saved, and a restart begins further back.
  static_cast<void>(save(false));
}

void Scrubber::run() {
  UniqueLock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&]() NACRE_REQUIRES(mutex_) {
      return closing_ || row_.state == ScrubState::running;
    });
    if (closing_) return;
    pass_ordinal_ = ordinal_;
    is_working_ = true;
    lock.unlock();
    saved_at_ = stretch_began_ = clock_->now();
    pending_.clear();
    end(pass());
    segment_scrub_.reset();
    lock.lock();
    is_working_ = false;
    wake_.notify_all();
  }
}

void Scrubber::end(const Result<>& outcome) {
  if (outcome || outcome.error().code == ErrorCode::cancelled) return;
  spdlog::error("the scrub stops: {} ({})", outcome.error().message,
                to_string(outcome.error().code));
  static_cast<void>(change([&](ScrubRow& row) {
    row.state = ScrubState::stopped;
    row.ended_seconds = std::time(nullptr);
    row.error = outcome.error().message.substr(0, metadata::scrub_words_size_bytes_max);
  }));
  static_cast<void>(save(false));
}

// Waits as long as the rate asks for after this many verified bytes.
Result<> Scrubber::pause_for(std::uint64_t bytes) {
  const auto now = clock_->now();
  const std::uint64_t activity = mounted_.store().activity();
  const bool is_busy = std::exchange(seen_activity_, activity) != activity;
  UniqueLock lock(mutex_);
  const std::uint64_t rate = row_.rate_bytes_per_second;
  if (!limit_ || limit_->bytes_per_second() != rate) limit_.emplace(rate);
  auto time = limit_->after(is_busy ? busy_cost * bytes : bytes, now);
  if (rate == 0 && is_busy) {
    time = std::min<ScrubClock::Clock::duration>(now - stretch_began_, busy_pause_max);
  }
  if (time.count() > 0) {
    clock_->wait(lock, wake_, time, [&]() NACRE_REQUIRES(mutex_) {
      return !is_wanted() || row_.rate_bytes_per_second != rate;
    });
  }
  stretch_began_ = clock_->now();
  if (!is_wanted()) return fail(ErrorCode::cancelled, "the scrub was paused or stopped");
  return {};
}

}  // namespace nacre::fs
