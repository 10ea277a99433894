// SPDX-License-Identifier: Apache-2.0
#include "fs/rotation/rotation.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/store/genuine_records.h"
#include "gpu_engine/forget_keys.h"
#include "metadata/keys/keyring_rotation.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

using std::chrono::milliseconds;

namespace {

// Segments and files that are in use are free soon. They are looked at again after this time.
constexpr milliseconds hand_pause{200};
// The wait after an error that may pass. It doubles with each try.
constexpr milliseconds retry_pause_min{1000};
constexpr milliseconds retry_pause_max{60'000};

bool may_pass(ErrorCode code) {
  return code == ErrorCode::no_space || code == ErrorCode::out_of_memory || code == ErrorCode::busy;
}

}  // namespace

std::string_view to_string(RotationState state) {
  switch (state) {
    case RotationState::none:
      return "none";
    case RotationState::running:
      return "running";
    case RotationState::paused:
      return "paused";
    case RotationState::waiting:
      return "waiting";
    case RotationState::damaged:
      return "damaged";
    case RotationState::stopped:
      return "stopped";
  }
  return "unknown";
}

Rotation::Rotation(std::shared_ptr<metadata::BackingDirectory> directory,
                   std::shared_ptr<metadata::KeyTree> keys, metadata::KeyringKeeper& keyring,
                   Mounted& mounted)
    : directory_(std::move(directory)),
      keys_(std::move(keys)),
      keyring_(keyring),
      mounted_(mounted) {
  if (const auto opened = load_superblock()) known_superblock_ = opened->digest;
  if (!keys_->is_rotating()) return;
  const bool is_read_only = mounted_.is_read_only();
  if (!is_read_only) row_ = remembered().value_or(metadata::RotationRow{});
  state_ = is_read_only || row_.paused ? RotationState::paused : RotationState::running;
}

Rotation::~Rotation() {
  stop();
}

Result<> Rotation::remember(const metadata::RotationRow& row) {
  return mounted_.database().put_now(
      metadata::Table::system,
      {{std::string(metadata::system_key_rotation), metadata::encode(row)}});
}

Result<metadata::RotationRow> Rotation::remembered() const {
  NACRE_ASSIGN(const auto value,
               mounted_.database().get(metadata::Table::system, metadata::system_key_rotation));
  if (!value) return metadata::RotationRow{};
  return metadata::decode_rotation_row(*value);
}

Result<> Rotation::go_on() {
  LockGuard lock(mutex_);
  if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
  if (row_.paused) return fail(ErrorCode::cancelled, "the rotation is paused");
  return {};
}

Result<> Rotation::wait(RotationState state, std::string message, milliseconds pause) {
  UniqueLock lock(mutex_);
  state_ = state;
  message_ = std::move(message);
  wake_.wait_for(lock, pause, [&]() NACRE_REQUIRES(mutex_) { return stopping_ || row_.paused; });
  if (!row_.paused) state_ = RotationState::running;
  lock.unlock();
  report_progress();
  return go_on();
}

void Rotation::enter(std::string_view stage) {
  {
    LockGuard lock(mutex_);
    stage_ = stage;
    message_.clear();
    state_ = RotationState::running;
  }
  report_progress();
}

void Rotation::report_progress() {
  if (progress_) progress_(status());
}

Result<> Rotation::work(Mode mode) {
  NACRE_TRY(go_on());
  {
    LockGuard lock(mutex_);
    since_ = std::chrono::steady_clock::now();
    left_then_ = mounted_.store().outdated().live_bytes;
    if (row_.total_bytes == 0) row_.total_bytes = left_then_;
  }
  enter("records");
  NACRE_TRY(settle_superblock());
  NACRE_TRY(mounted_.store().begin_epoch());
  NACRE_ASSIGN(const auto row, remembered());
  if (row.recompress) {
    NACRE_ASSIGN(const auto loaded, load_superblock());
    mounted_.store().set_codec(loaded.superblock.codec, loaded.superblock.level);
    mounted_.store().recompress_old_epochs();
  }
  NACRE_TRY(renew_checkpoint());
  NACRE_TRY(rekey_records(mode));
  enter("database");
  NACRE_TRY(reseal_database());
  if (const auto left = mounted_.store().outdated(); left.immovable_count > 0) {
    return fail(ErrorCode::corrupt,
                fmt::format("everything is sealed under the new key but for records in {} "
                            "segments that cannot be opened; the old key stays until they are "
                            "gone: fsck.nacre --deep names the files that are hit",
                            left.immovable_count));
  }
  enter("verification");
  return finish();
}

// If a checkpoint never fitted, there is no earlier one that would have to be removed.
Result<> Rotation::renew_checkpoint() {
  const auto written = mounted_.write_checkpoint(CheckpointKeep::only_this);
  if (written || written.error().code == ErrorCode::too_big) return {};
  if (written.error().code != ErrorCode::no_space) return tl::unexpected(written.error());
  return fail(ErrorCode::no_space,
              fmt::format("{}: no room on the disk for the checkpoint that a rotation writes under "
                          "the new key. Nothing is lost: both keys stay. Make room there or delete "
                          "files; a mounted volume then goes on by itself, for one that is not run "
                          "'nacre key rotate' again",
                          directory_->description()));
}

Result<> Rotation::rekey_records(Mode mode) {
  RekeyOrder order;
  const auto has_another_rate = [&] {
    LockGuard lock(mutex_);
    return order.rate_bytes_per_second != row_.rate_bytes_per_second;
  };
  order.go_on = [&]() -> Result<> {
    NACRE_TRY(go_on());
    if (has_another_rate()) return fail(ErrorCode::cancelled, "goes on at another rate");
    return {};
  };
  order.progress = [this]() NACRE_REQUIRES(work_mutex_) { report_progress(); };
  order.named_places = [this](metadata::SegmentNumber segment) { return named_places(segment); };
  while (true) {
    {
      LockGuard lock(mutex_);
      order.rate_bytes_per_second = row_.rate_bytes_per_second;
    }
    order.at_full_speed = mode == Mode::full_speed && order.rate_bytes_per_second == 0;
    NACRE_TRY(mounted_.check_writable());
    const auto step = mounted_.compactor().rekey(order);
    if (!step && step.error().code == ErrorCode::cancelled && go_on() && has_another_rate()) {
      continue;
    }
    if (!step) return tl::unexpected(step.error());
    if (*step == RekeyStep::done) return {};
    report_progress();
    if (*step == RekeyStep::moved) continue;
    const unsigned backups = mounted_.backups().count();
    NACRE_TRY(wait(RotationState::waiting,
                   backups > 0 ? fmt::format("waits for the end of {} backups", backups)
                               : std::string("waits for segments that are being read"),
                   hand_pause));
  }
}

Result<> Rotation::reseal_database() {
  while (true) {
    NACRE_TRY(mounted_.check_writable());
    NACRE_ASSIGN(const auto left, mounted_.database().reseal([this] { return go_on(); }));
    if (left.empty()) return {};
    const unsigned backups = mounted_.backups().count();
    NACRE_TRY(wait(RotationState::waiting,
                   backups > 0
                       ? fmt::format("waits for the end of {} backups", backups)
                       : fmt::format("waits until the database has removed {}", left.front()),
                   hand_pause));
  }
}

// Makes everything durable and removes what is empty. The first commit removes it, and the syncs
// make the removal durable whether or not another commit follows.
Result<> Rotation::settle() {
  NACRE_TRY(mounted_.committer().commit(CommitScope{.everything = true}));
  NACRE_TRY(directory_->sync_directory(metadata::segment_folder));
  return directory_->sync_directory(metadata::database_folder);
}

Result<> Rotation::finish() {
  NACRE_TRY(settle());
  NACRE_ASSIGN(const auto counts,
               count_epochs(
                   *directory_, keys_->current_epoch_number(), WalkDepth::headers,
                   [this](std::uint64_t) { return go_on(); },
                   [this](auto segment) { return mounted_.store().vouches_for(segment); }));
  if (counts.other_file_count + counts.other_record_count > 0) {
    return fail(ErrorCode::busy, fmt::format("not everything is sealed under the new key yet: {}",
                                             counts.first_other));
  }
  NACRE_TRY(keyring_.end_rotation());
  keys_->end_rotation();
  engine::forget_keys(mounted_.engine());
  spdlog::info("rotation of keys: everything is sealed under epoch {}, the older keys are gone",
               keys_->current_epoch_number());
  {
    LockGuard lock(mutex_);
    state_ = RotationState::none;
    stage_ = {};
    row_ = {};
  }
  report_progress();
  NACRE_TRY(remember({}));
  return forget_digests();
}

// Called only after the last keyring is durable: as long as older keys open records, the digests
// say which records count. Digests that a crash leaves behind mean nothing, and are removed when
// the volume is next opened for writing.
Result<> Rotation::forget_digests() {
  const auto forgotten = forget_genuine_records(mounted_.database(), [this]() -> Result<> {
    {
      LockGuard lock(mutex_);
      if (stopping_) return fail(ErrorCode::cancelled, "the volume is closing");
    }
    return mounted_.committer().commit(CommitScope{.everything = true});
  });
  return forgotten ? Result<>() : tl::unexpected(forgotten.error());
}

// After a crash between the two copies of the last keyring, the other copy still has the old keys.
Result<> Rotation::repair_copies() {
  NACRE_ASSIGN(const auto found, metadata::find_keyring(*directory_));
  if (found.warnings.empty()) return {};
  return keyring_.finish_update();
}

Result<> Rotation::run(const Progress& progress) {
  NACRE_TRY(check_not_read_only());
  LockGuard one(work_mutex_);
  if (!keys_->is_rotating()) {
    NACRE_TRY(repair_copies());
    return forget_digests();
  }
  {
    LockGuard lock(mutex_);
    row_.paused = false;
  }
  progress_ = progress;
  Result<> worked;
  do {
    worked = work(Mode::full_speed);
  } while (!worked && worked.error().code == ErrorCode::busy &&
           wait(RotationState::waiting, worked.error().message, retry_pause_min));
  progress_ = {};
  return worked;
}

void Rotation::start() {
  if (mounted_.is_read_only()) return;
  {
    LockGuard lock(mutex_);
    begun_ = keys_->is_rotating();
  }
  if (const auto repaired = repair_copies(); !repaired) {
    spdlog::warn("the keyring's other copy cannot be written: {}", repaired.error().message);
  }
  thread_ = std::thread([this] { run_background(); });
}

void Rotation::stop() {
  {
    LockGuard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Rotation::run_background() {
  milliseconds retry_pause = retry_pause_min;
  {
    LockGuard one(work_mutex_);
    const auto forgotten = keys_->is_rotating() ? Result<>() : forget_digests();
    if (!forgotten && forgotten.error().code != ErrorCode::cancelled) {
      spdlog::warn("what is left of the last rotation of keys cannot be removed: {}",
                   forgotten.error().message);
    }
  }
  while (true) {
    {
      UniqueLock lock(mutex_);
      if (row_.paused) state_ = RotationState::paused;
      wake_.wait(lock,
                 [&]() NACRE_REQUIRES(mutex_) { return stopping_ || (begun_ && !row_.paused); });
      if (stopping_) return;
    }
    bool is_asked = false;
    {
      LockGuard lock(mutex_);
      is_asked = asked_.has_value();
    }
    if (is_asked) {
      begin_asked();
      continue;
    }
    Result<> worked;
    {
      LockGuard one(work_mutex_);
      worked = keys_->is_rotating() ? work(Mode::background) : Result<>();
    }
    UniqueLock lock(mutex_);
    if (worked) {
      begun_ = false;
      retry_pause = retry_pause_min;
      continue;
    }
    const Error& error = worked.error();
    if (error.code == ErrorCode::cancelled) continue;
    message_ = error.message;
    if (may_pass(error.code)) {
      spdlog::info("rotation of keys waits: {}", error.message);
      state_ = RotationState::waiting;
      wake_.wait_for(lock, retry_pause,
                     [&]() NACRE_REQUIRES(mutex_) { return stopping_ || row_.paused; });
      retry_pause = std::min(2 * retry_pause, retry_pause_max);
      continue;
    }
    const bool is_damaged = mounted_.store().outdated().immovable_count > 0;
    state_ = is_damaged ? RotationState::damaged : RotationState::stopped;
    spdlog::error("rotation of keys: {}", error.message);
    begun_ = false;
  }
}

Result<> Rotation::pause() {
  NACRE_TRY(check_not_read_only());
  {
    LockGuard lock(mutex_);
    if (is_surveying_) {
      row_.paused = true;
      state_ = RotationState::paused;
      wake_.notify_all();
      return {};
    }
  }
  if (!keys_->is_rotating()) return fail(ErrorCode::not_found, "no rotation is under way");
  NACRE_ASSIGN(auto row, remembered());
  row.paused = true;
  NACRE_TRY(remember(row));
  {
    LockGuard lock(mutex_);
    // The rotation may have ended while the row was written. Its state would then stay "paused" for
    // ever.
    if (!keys_->is_rotating()) return fail(ErrorCode::not_found, "no rotation is under way");
    row_.paused = true;
    state_ = RotationState::paused;
  }
  wake_.notify_all();
  return {};
}

Result<> Rotation::resume(std::optional<std::uint64_t> rate_bytes_per_second) {
  NACRE_TRY(check_not_read_only());
  {
    LockGuard lock(mutex_);
    if (is_surveying_) {
      row_.paused = false;
      row_.rate_bytes_per_second = rate_bytes_per_second.value_or(row_.rate_bytes_per_second);
      state_ = RotationState::running;
      wake_.notify_all();
      return {};
    }
  }
  if (!keys_->is_rotating()) return fail(ErrorCode::not_found, "no rotation is under way");
  NACRE_ASSIGN(auto row, remembered());
  row.paused = false;
  row.rate_bytes_per_second = rate_bytes_per_second.value_or(row.rate_bytes_per_second);
  NACRE_TRY(remember(row));
  {
    LockGuard lock(mutex_);
    if (!keys_->is_rotating()) return fail(ErrorCode::not_found, "no rotation is under way");
    row_.paused = false;
    row_.rate_bytes_per_second = row.rate_bytes_per_second;
    begun_ = true;
    state_ = RotationState::running;
  }
  wake_.notify_all();
  return {};
}

RotationStatus Rotation::status() const {
  RotationStatus status{.epoch = keys_->current_epoch_number()};
  const OutdatedSegments left =
      mounted_.is_read_only() ? OutdatedSegments{} : mounted_.store().outdated();
  LockGuard lock(mutex_);
  status.state = state_;
  if (state_ == RotationState::none) return status;
  status.is_under_way = keys_->is_rotating() || is_surveying_;
  status.message = message_;
  if (!status.is_under_way) return status;
  status.stage = stage_;
  if (is_surveying_) {
    status.total_bytes = survey_bytes_;
    status.done_bytes = std::min(surveyed_bytes_, survey_bytes_);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - since_;
    if (state_ == RotationState::running && surveyed_bytes_ > 0 && passed.count() > 0.1) {
      status.bytes_per_second =
          static_cast<std::uint64_t>(static_cast<double>(surveyed_bytes_) / passed.count());
    }
    return status;
  }
  status.total_bytes = std::max(row_.total_bytes, left.live_bytes);
  status.done_bytes = status.total_bytes - left.live_bytes;
  status.damaged_segment_count = left.immovable_count;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - since_;
  if (state_ == RotationState::running && left_then_ > left.live_bytes && passed.count() > 0.1) {
    status.bytes_per_second = static_cast<std::uint64_t>(
        static_cast<double>(left_then_ - left.live_bytes) / passed.count());
  }
  return status;
}

Result<EpochCounts> Rotation::verify() const {
  return count_epochs(*directory_, keys_->current_epoch_number(), WalkDepth::everything,
                      [this](std::uint64_t) -> Result<> {
                        LockGuard lock(mutex_);
                        if (!stopping_) return {};
                        return fail(ErrorCode::cancelled, "the volume is closing");
                      });
}

}  // namespace nacre::fs
