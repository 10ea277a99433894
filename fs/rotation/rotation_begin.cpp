// SPDX-License-Identifier: Apache-2.0
// How a rotation begins: on the caller's thread, or in the background behind a survey.
#include <utility>

#include <spdlog/spdlog.h>

#include "fs/rotation/rotation.h"

namespace nacre::fs {

namespace {

tl::unexpected<Error> under_way(bool is_paused) {
  if (is_paused) {
    return fail(
        ErrorCode::busy,
        "a rotation of this volume's keys is paused: 'nacre key rotate --resume' lets it go "
        "on, and another one may follow it");
  }
  return fail(ErrorCode::busy,
              "a rotation of this volume's keys is under way already: 'nacre key status' tells how "
              "far it is, and another one may follow it");
}

}  // namespace

Result<> Rotation::check_not_read_only() const {
  if (!mounted_.is_read_only()) return {};
  return fail(ErrorCode::read_only, "the volume is open for reading only");
}

Result<> Rotation::check_none() const {
  LockGuard lock(mutex_);
  if (!keys_->is_rotating() && !is_surveying_) return {};
  return under_way(row_.paused);
}

Result<> Rotation::begin(const RotationOptions& options, const Progress& progress) {
  NACRE_TRY(check_not_read_only());
  // A thread that works on a rotation holds the mutex until it is done.
  NACRE_TRY(check_none());
  LockGuard one(work_mutex_);
  NACRE_TRY(check_none());
  progress_ = progress;
  const auto begun = begin_locked(options, Mode::full_speed);
  progress_ = {};
  return begun;
}

Result<bool> Rotation::begin_in_background(RotationOptions options) {
  NACRE_TRY(check_not_read_only());
  NACRE_TRY(check_none());
  LockGuard one(work_mutex_);
  NACRE_TRY(check_none());
  NACRE_TRY(check_can_begin());
  NACRE_ASSIGN(const auto format, check_before(options));
  if (format == metadata::EpochFormat::one) {
    NACRE_TRY(begin_locked(options, Mode::background));
    return false;
  }
  {
    LockGuard lock(mutex_);
    if (stopping_ || !thread_.joinable()) {
      return fail(ErrorCode::cancelled, "the volume is closing");
    }
    asked_ = std::move(options);
    is_surveying_ = true;
    surveyed_bytes_ = survey_bytes_ = 0;
    state_ = RotationState::running;
    stage_ = "survey";
    message_.clear();
    row_.paused = false;
    begun_ = true;
  }
  wake_.notify_all();
  return true;
}

void Rotation::begin_asked() {
  LockGuard one(work_mutex_);
  RotationOptions options;
  {
    LockGuard lock(mutex_);
    options = std::move(*asked_);
    asked_.reset();
  }
  const auto begun = begin_locked(options, Mode::background);
  LockGuard lock(mutex_);
  begun_ = keys_->is_rotating();
  if (!begun && !stopping_) spdlog::error("rotation of keys: {}", begun.error().message);
}

Result<> Rotation::check_can_begin() {
  NACRE_TRY(mounted_.check_writable());
  // A backup would copy a keyring and a superblock of different states.
  if (mounted_.backups().count() > 0) {
    return fail(
        ErrorCode::busy,
        "a backup of this volume is under way, and would copy a keyring and a superblock that "
        "do not belong together: try again when it is done");
  }
  return {};
}

Result<> Rotation::begin_locked(const RotationOptions& options, Mode mode) {
  NACRE_TRY(check_can_begin());
  NACRE_ASSIGN(const auto format, check_before(options));
  const bool is_format_2 = format != metadata::EpochFormat::one;
  metadata::RotationRow row{.recompress = options.codec.has_value(),
                            .rate_bytes_per_second = options.rate_bytes_per_second};
  const auto change_keys = [&]() NACRE_REQUIRES(work_mutex_) -> Result<> {
    NACRE_ASSIGN(const metadata::NextKeys secrets, draw_keys(options));
    if (is_format_2) {
      NACRE_TRY(survey(options, mode));
      NACRE_TRY(prepare_database(secrets));
      // A backup may have begun meanwhile.
      NACRE_TRY(check_can_begin());
    }
    NACRE_ASSIGN(const BeforeRotation before, settle_before(options));
    NACRE_TRY(remember(row));
    return save_new_keyring(options, before, secrets);
  };
  const auto changed = change_keys();
  if (is_format_2) end_survey(changed);
  NACRE_TRY(changed);
  spdlog::info("rotation of keys: epoch {} begins", keys_->current_epoch_number());
  {
    LockGuard lock(mutex_);
    row.paused = row_.paused;
    row.rate_bytes_per_second =
        is_format_2 ? row_.rate_bytes_per_second : row.rate_bytes_per_second;
    row_ = row;
    state_ = row.paused ? RotationState::paused : RotationState::running;
    begun_ = true;
  }
  wake_.notify_all();
  NACRE_TRY(mounted_.store().begin_epoch());
  NACRE_TRY(keyring_.note_generation());
  row.total_bytes = mounted_.store().outdated().live_bytes;
  NACRE_TRY(remember(row));
  LockGuard lock(mutex_);
  row_.total_bytes = row.total_bytes;
  return {};
}

}  // namespace nacre::fs
