// SPDX-License-Identifier: Apache-2.0
#include "fs/space/write_pacer.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace nacre::fs {

namespace {

// The gain is the number of bytes that may be written for each dead byte that compaction passes. At
// 1 dead bytes stay the same. These are its value when the slack is just used up, how fast it falls
// with the overrun, and its minimum.
constexpr double gain_max = 2;
constexpr double gain_slope = 1.5;
constexpr double gain_min = 0.5;
// A write's deadline is this long after it for each byte: a minute for 1 MiB, a quarter of a second
// for a page. Large writes wait for less than that while compaction works, so small writes overtake
// them.
constexpr std::chrono::nanoseconds due_after_per_byte{60'000};
// Credit by the rate is added at most once in this time.
constexpr std::chrono::milliseconds tick_min{1};
constexpr std::chrono::milliseconds tick_max{1000};

void call(std::vector<std::function<void()>>& ready) {
  for (const auto& go_on : ready)
    go_on();
}

}  // namespace

WritePacer::~WritePacer() {
  stop();
}

void WritePacer::engage(double overrun) {
  const LockGuard lock(mutex_);
  if (stopping_) return;
  gain_ = std::max(gain_max - gain_slope * overrun, gain_min);
  engaged_.store(true, std::memory_order_relaxed);
}

void WritePacer::disengage() {
  if (!is_engaged()) return;
  Ready ready;
  {
    const LockGuard lock(mutex_);
    engaged_.store(false, std::memory_order_relaxed);
    credit_ = 0;
    take_locked([](const Held&) { return true; }, ready);
  }
  call(ready);
}

void WritePacer::note_cleaned(std::uint64_t dead_bytes) {
  if (!is_engaged()) return;
  Ready ready;
  {
    const LockGuard lock(mutex_);
    add_locked(gain_ * static_cast<double>(dead_bytes), ready);
  }
  call(ready);
}

void WritePacer::exempt(std::optional<metadata::InodeNumber> inode) {
  Ready ready;
  {
    const LockGuard lock(mutex_);
    exempt_ = inode;
    if (inode) take_locked([&](const Held& held) { return held.inode == *inode; }, ready);
  }
  call(ready);
}

bool WritePacer::may_go_on(std::uint64_t bytes) {
  if (note_written_) note_written_(bytes);
  if (!is_engaged()) return true;
  const LockGuard lock(mutex_);
  if (!held_.empty() || credit_ <= 0) return false;
  credit_ -= static_cast<double>(bytes);
  return true;
}

void WritePacer::hold(metadata::InodeNumber inode, std::uint64_t bytes,
                      std::function<void()> go_on) noexcept {
  const auto is_held = [&] {
    const LockGuard lock(mutex_);
    if (!engaged_ || stopping_ || exempt_ == inode) return false;
    try {
      if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
      const auto due = Clock::now() + bytes * due_after_per_byte;
      held_.emplace(due, Held{inode, bytes, go_on});
    } catch (const std::exception&) {
      return false;  // without memory or a thread this write would never go on, so it is not held
    }
    ++held_count_;
    return true;
  };
  if (is_held()) {
    wake_.notify_one();
  } else {
    go_on();
  }
}

void WritePacer::stop() {
  Ready ready;
  std::thread ended;
  {
    const LockGuard lock(mutex_);
    ended = std::move(thread_);
    stopping_ = true;
    engaged_.store(false, std::memory_order_relaxed);
    take_locked([](const Held&) { return true; }, ready);
  }
  wake_.notify_all();
  call(ready);
  if (ended.joinable()) ended.join();
}

WritePacerStats WritePacer::stats() const {
  const LockGuard lock(mutex_);
  return {.held_count = held_count_, .waiting_count = held_.size(), .is_engaged = is_engaged()};
}

// A write of any size goes on while there is credit. The credit may become negative; the next write
// waits until it is positive again.
void WritePacer::add_locked(double bytes, Ready& ready) {
  credit_ += bytes;
  while (!held_.empty() && credit_ > 0) {
    const auto first = held_.begin();
    credit_ -= static_cast<double>(first->second.bytes);
    ready.push_back(std::move(first->second.go_on));
    held_.erase(first);
  }
  credit_ = std::min(credit_, static_cast<double>(options_.burst_bytes_max));
}

template <typename IsWanted>
void WritePacer::take_locked(IsWanted is_wanted, Ready& ready) {
  for (auto place = held_.begin(); place != held_.end();) {
    if (!is_wanted(place->second)) {
      ++place;
      continue;
    }
    ready.push_back(std::move(place->second.go_on));
    place = held_.erase(place);
  }
}

// Adds credit by the rate while writes wait. The rate falls faster than the gain: if compaction
// were slower than the rate, dead bytes would grow without a bound.
void WritePacer::run() {
  const auto rate_max = static_cast<double>(options_.rate_min_bytes_per_second);
  UniqueLock lock(mutex_);
  while (!stopping_) {
    if (held_.empty() || rate_max == 0) {
      wake_.wait(lock, [&]() NACRE_REQUIRES(mutex_) {
        return stopping_ || (!held_.empty() && rate_max > 0);
      });
      continue;
    }
    const double gain_share = gain_ / gain_max;
    const double rate = rate_max * gain_share * gain_share;
    const auto from = Clock::now();
    const std::chrono::duration<double> missing(std::max(1 - credit_, 1.0) / rate);
    const auto tick = std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(missing),
                                 tick_min, tick_max);
    wake_.wait_for(lock, tick, [&]() NACRE_REQUIRES(mutex_) { return stopping_; });
    Ready ready;
    add_locked(rate * std::chrono::duration<double>(Clock::now() - from).count(), ready);
    lock.unlock();
    call(ready);
    lock.lock();
  }
}

}  // namespace nacre::fs
