// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/write_gate.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <utility>

namespace nacre::fs {

namespace {

constexpr std::uint64_t kept_bytes_max = 1u << 20;
constexpr std::uint64_t share_kept = 256;
constexpr std::uint64_t share_dirty = 16;
constexpr std::uint64_t share_slack = 4;
constexpr std::uint64_t dirty_bytes_wanted_min = 8u << 20;
constexpr std::uint64_t slack_bytes_max = 64u << 20;  // the maximum that is taken between two looks
constexpr std::int64_t look_interval_ms = 10;
constexpr std::int64_t narrow_min_ms = 1000;

// The bytes that the whole system holds and that are not written yet.
std::uint64_t dirty_bytes_now() {
  static const auto page_size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::ifstream file("/proc/vmstat");
  std::uint64_t count = 0, sum = 0;
  for (std::string name; file >> name >> count;) {
    if (name == "nr_dirty" || name == "nr_writeback") sum += count;
    if (name == "nr_writeback") break;  // the later one
  }
  return sum * page_size;
}

std::int64_t now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace

std::uint64_t WriteGate::dirty_bytes_wanted(std::uint64_t total_bytes) {
  return std::max(total_bytes / share_dirty, dirty_bytes_wanted_min);
}

WriteGate::File& WriteGate::add(InodeNumber inode) {
  if (files_.size() >= file_count_max && !files_.contains(inode.value)) {
    take_promise(files_.begin()->second);
    files_.erase(files_.begin());
  }
  File& file = files_[inode.value];
  count_.store(files_.size(), std::memory_order_release);
  return file;
}

WriteGate::File WriteGate::find(InodeNumber inode) const noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return {};
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  return place == files_.end() ? File{} : place->second;
}

void WriteGate::take_promise(File& file) noexcept {
  promised_bytes_ -= std::exchange(file.promised_bytes, 0);
}

void WriteGate::promise(InodeNumber inode, Range range, std::uint64_t room_bytes) {
  const LockGuard lock(mutex_);
  File& file = add(inode);
  file.promised = range;
  file.promised_bytes += room_bytes;
  promised_bytes_ += room_bytes;
}

void WriteGate::settle(InodeNumber inode) noexcept {
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end()) return;
  place->second.promised = {.begin = 0, .end = 0};
  take_promise(place->second);
}

std::vector<InodeNumber> WriteGate::promised_files() const {
  std::vector<InodeNumber> inodes;
  const LockGuard lock(mutex_);
  for (const auto& [inode, file] : files_) {
    if (file.promised_bytes > 0) inodes.push_back(InodeNumber{inode});
  }
  return inodes;
}

bool WriteGate::close(InodeNumber inode) {
  const LockGuard lock(mutex_);
  File& file = add(inode);
  const bool was_open = !std::exchange(file.is_closed, true);
  const bool was_ajar = std::exchange(file.is_ajar, false);
  return was_open || was_ajar;
}

void WriteGate::close_with_answer(InodeNumber inode, pid_t process) {
  const LockGuard lock(mutex_);
  File& file = add(inode);
  file.is_closed = true;
  file.is_ajar = false;
  file.maker = process;
}

bool WriteGate::keeps_closed(InodeNumber inode, pid_t process) noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end() || !place->second.is_closed) return false;
  File& file = place->second;
  if (file.maker && *file.maker != process) {
    file.maker.reset();
    file.is_ajar = true;
  }
  return !file.is_ajar;
}

void WriteGate::leave_ajar(InodeNumber inode) noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return;
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end() || !place->second.is_closed) return;
  place->second.is_ajar = true;
  place->second.maker.reset();
}

void WriteGate::refuse(InodeNumber inode, ErrorCode error, bool names_more) {
  const LockGuard lock(mutex_);
  File& file = add(inode);
  file.is_closed = true;
  file.is_ajar = false;
  file.error = error;
  file.names_more = file.names_more || names_more;
  if (error == ErrorCode::no_space) set_narrow();
}

void WriteGate::open(InodeNumber inode) noexcept {
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end()) return;
  take_promise(place->second);
  place->second = {.names_more = place->second.names_more};
  if (!place->second.names_more) files_.erase(place);
  count_.store(files_.size(), std::memory_order_release);
}

bool WriteGate::is_closed(InodeNumber inode) const noexcept {
  return find(inode).is_closed;
}

void WriteGate::forget(InodeNumber inode) noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return;
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end()) return;
  take_promise(place->second);
  files_.erase(place);
  count_.store(files_.size(), std::memory_order_release);
}

bool WriteGate::names_more(InodeNumber inode) const noexcept {
  return find(inode).names_more;
}

void WriteGate::take_error(InodeNumber inode) {
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place != files_.end()) place->second.error.reset();
}

bool WriteGate::is_narrow(const VolumeSpace& space, std::uint64_t dirty_bytes_max) {
  const std::uint64_t slack = std::min(slack_bytes_max, space.total_bytes / share_slack);
  if (space.available_bytes < slack) return true;
  const std::uint64_t room = (space.available_bytes - slack) / 2;
  return room < dirty_bytes_max && room < std::min(dirty_bytes_now(), dirty_bytes_max);
}

void WriteGate::set_narrow() {
  narrow_until_ms_ = now_ms() + narrow_min_ms;
  if (!is_narrow_.exchange(true, std::memory_order_relaxed)) has_narrowed_ = true;
}

bool WriteGate::is_narrow(Volume& volume) {
  const std::int64_t now = now_ms();
  std::int64_t due = next_look_ms_.load(std::memory_order_relaxed);
  if (now >= due && next_look_ms_.compare_exchange_strong(due, now + look_interval_ms)) {
    const Result<VolumeSpace> space = volume.space();
    if (space && is_narrow(*space, dirty_bytes_max_)) {
      set_narrow();
    } else if (now >= narrow_until_ms_) {
      is_narrow_ = false;
    }
    kept_bytes_ = space ? std::min(kept_bytes_max, space->total_bytes / share_kept) : 0;
  }
  return is_narrow_.load(std::memory_order_relaxed);
}

}  // namespace nacre::fs
