// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/lockable_volume.h"

#include <chrono>
#include <exception>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "tools/mount/own_thread.h"
#include "tools/mount/wiped_heap.h"

namespace nacre::tools {

namespace {

// A trim may take for ever, and a user who locks is told so rather than left waiting.
constexpr std::chrono::milliseconds commands_patience{5000};

}  // namespace

LockableVolume::Use::~Use() {
  if (owner_ == nullptr) return;
  const LockGuard lock(owner_->mutex_);
  if (--owner_->use_count_ == 0) owner_->unused_.notify_all();
}

std::string LockableVolume::where() const {
  return session_ == nullptr ? plan_.mountpoint : session_->mount_point();
}

Result<> LockableVolume::open(metadata::VolumeKeys keys) {
  // The main thread stays, and with it what an opening leaves on a stack.
  Result<std::unique_ptr<OpenVolume>> opened;
  run_on_own_thread(
      [&] { opened = OpenVolume::open(plan_, place_, std::move(keys), may_name_files_); });
  NACRE_ASSIGN(volume_, std::move(opened));
  return {};
}

Result<LockableVolume::Use> LockableVolume::use() {
  const LockGuard lock(mutex_);
  switch (state_) {
    case State::open:
      ++use_count_;
      return Use(*this);
    case State::changing:
      return fail(ErrorCode::busy,
                  fmt::format("{} is just being locked or unlocked; try again", where()));
    case State::locked:
      break;
  }
  return fail(ErrorCode::not_permitted,
              fmt::format("{} is locked: 'nacre unlock {}' opens it again", where(), where()));
}

bool LockableVolume::is_locked() const {
  const LockGuard lock(mutex_);
  return state_ == State::locked;
}

std::uint64_t LockableVolume::keyring_generation() {
  if (const auto volume = use()) return (*volume)->keyring().generation();
  const LockGuard lock(mutex_);
  return state_ == State::locked ? locked_.keyring_generation : 0;
}

void LockableVolume::settle(State state) {
  const LockGuard lock(mutex_);
  state_ = state;
}

Result<> LockableVolume::begin_locking() {
  UniqueLock lock(mutex_);
  if (state_ == State::changing) {
    return fail(ErrorCode::busy,
                fmt::format("{} is being locked or unlocked already; try again", where()));
  }
  state_ = State::changing;
  const auto is_unused = [this]() NACRE_REQUIRES(mutex_) { return use_count_ == 0; };
  const bool waited = unused_.wait_for(lock, commands_patience, is_unused);
  if (waited && volume_->mounted().backups().count() == 0) return {};
  state_ = State::open;
  return fail(ErrorCode::busy,
              waited
                  ? fmt::format("a backup of {} is under way: lock it when that is done", where())
                  : fmt::format("a command is at work at {}, for example a trim: lock it when "
                                "that is done",
                                where()));
}

Result<bool> LockableVolume::lock() {
  if (is_locked()) return false;
  NACRE_TRY(begin_locking());
  // Until the session is suspended, an error leaves everything as it was.
  Result<> suspended;
  try {
    suspended = session_->suspend([this] { return volume_->mounted().volume().sync_all(); });
  } catch (...) {
    settle(State::open);
    throw;
  }
  if (!suspended) {
    settle(State::open);
    return tl::unexpected(suspended.error());
  }
  const auto closed = close_for_lock();
  settle(State::locked);
  if (!closed) {
    return fail(closed.error().code,
                fmt::format("{} is locked, but its volume could not be closed well: {}", where(),
                            closed.error().message));
  }
  spdlog::info("{} is locked", where());
  return true;
}

Result<> LockableVolume::close_for_lock() {
  const WipedHeap wiped;
  locked_ = {};
  Result<> closed;
  const auto close = [&] {
    try {
      volume_->stop_work();
      closed = volume_->close(&locked_);
    } catch (const std::exception& exception) {
      closed = fail(ErrorCode::io, exception.what());
    }
    volume_.reset();
  };
  try {
    run_on_own_thread(close);
  } catch (const std::system_error&) {
    close();  // there is no thread: a little of what it frees is not overwritten
  }
  last_close_ = closed;
  return closed;
}

Result<std::unique_ptr<OpenVolume>> LockableVolume::open_again(ByteView volume_key) {
  NACRE_ASSIGN(auto keys, metadata::open_volume_keys_by_volume_key(*place_.directory, volume_key));
  if (keys.keys->fingerprint() != locked_.fingerprint) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{} holds another volume than the one that was locked, or another key "
                            "of it: put back the one that was there",
                            place_.path));
  }
  if (keys.keyring.generation < locked_.keyring_generation) {
    return fail(ErrorCode::rolled_back,
                fmt::format("the keyring of {} is older than when the volume was locked: put back "
                            "the one that was there",
                            place_.path));
  }
  for (const auto& warning : keys.warnings)
    spdlog::warn("{}", warning.message);
  if (!plan_.volume_options.read_only) NACRE_TRY(metadata::check_writable(keys.superblock));
  return OpenVolume::open(plan_, place_, std::move(keys), may_name_files_, &locked_);
}

Result<bool> LockableVolume::unlock(ByteView volume_key) {
  {
    const LockGuard lock(mutex_);
    if (state_ == State::open) return false;
    if (state_ == State::changing) {
      return fail(ErrorCode::busy,
                  fmt::format("{} is being locked or unlocked already; try again", where()));
    }
    state_ = State::changing;
  }
  Result<std::unique_ptr<OpenVolume>> opened;
  {
    WipedHeap wiped;  // for an opening that fails
    try {
      run_on_own_thread([&] { opened = open_again(volume_key); });
    } catch (const std::exception& exception) {
      opened = fail(ErrorCode::io, exception.what());
    }
    if (opened) wiped.leave();
  }
  if (!opened) {
    settle(State::locked);
    return tl::unexpected(opened.error());
  }
  volume_ = std::move(*opened);
  session_->resume(volume_->served());
  locked_ = {};
  volume_->start_work();
  settle(State::open);
  spdlog::info("{} is unlocked", where());
  return true;
}

Result<> LockableVolume::close() {
  if (!volume_) return last_close_;
  const auto closed = volume_->close();
  volume_.reset();
  return closed;
}

}  // namespace nacre::tools
