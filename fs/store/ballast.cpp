// SPDX-License-Identifier: Apache-2.0
#include "fs/store/ballast.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace nacre::fs {

using metadata::BackingSpace;
using metadata::OpenMode;

namespace {

constexpr std::uint64_t size_bytes_max = 64u << 20;
constexpr std::uint64_t share_of_disk = 16;
// The size of the ballast divided by this is left free in addition to it, so that it is not made
// and released again and again.
constexpr std::uint64_t share_for_margin = 8;
// The size of the ballast divided by this is kept for rows, if data that was taken is written after
// a release.
constexpr std::uint64_t share_for_rows = 2;
// The maximum of a grant: this much may be taken while another program fills the disk.
constexpr std::uint64_t grant_bytes_max = 8u << 20;

// The bytes that moved records may need on disk, with their rows.
std::uint64_t cost_of_moving(std::uint64_t bytes) {
  return bytes + bytes / 8;
}

tl::unexpected<Error> full(const metadata::BackingDirectory& directory) {
  return fail(ErrorCode::no_space,
              fmt::format("{}: the disk is full, or a quota is used up", directory.description()));
}

}  // namespace

std::uint64_t Ballast::size_for(std::uint64_t total_bytes) {
  return std::min(total_bytes / share_of_disk, size_bytes_max);
}

std::uint64_t Ballast::room(const BackingSpace& space, std::uint64_t unwritten_bytes) const {
  const std::uint64_t size = size_for(space.total_bytes);
  const std::uint64_t needed =
      (size - kept_bytes(size)) + size / share_for_margin + move_bytes_ + unwritten_bytes;
  return space.available_bytes > needed ? space.available_bytes - needed : 0;
}

void Ballast::make_way(metadata::BackingDirectory& directory) {
  const auto space = directory.space();
  if (!space || space->available_bytes >= size_for(space->total_bytes) / share_for_rows) return;
  const auto exists = directory.exists(ballast_file);
  if (exists && *exists) static_cast<void>(directory.remove(ballast_file));
}

bool Ballast::restore() {
  const LockGuard lock(mutex_);
  if (is_held()) return true;
  const auto space = directory_->space();
  if (!space) return false;
  const std::uint64_t size = size_for(space->total_bytes);
  const auto found = directory_->file_size(ballast_file);
  const std::uint64_t missing = found && *found < size ? size - *found : (found ? 0 : size);
  if (space->available_bytes < missing + size / share_for_margin) return false;
  const auto make = [&]() -> Result<> {
    NACRE_ASSIGN(auto file, directory_->open(ballast_file,
                                             found ? OpenMode::read_write : OpenMode::create_new));
    if (found && *found > size) NACRE_TRY(file->truncate(size));
    return file->allocate(size);  // gives blocks also to a ballast that was copied as a hole
  };
  if (const auto made = make(); !made) {
    if (made.error().code == ErrorCode::no_space && state_ == State::halved && shrink(size))
      return false;
    // A partial ballast is of no use, and its bytes may be needed.
    static_cast<void>(directory_->remove(ballast_file));
    state_.store(State::released, std::memory_order_release);
    if (made.error().code == ErrorCode::no_space) return false;
    // Without a ballast, data is taken until the disk refuses it.
    spdlog::warn("no space can be kept in reserve for a full disk: {}", made.error().message);
  }
  state_.store(State::held, std::memory_order_release);
  return true;
}

bool Ballast::shrink(std::uint64_t size) {
  const auto file = directory_->open(ballast_file, OpenMode::read_write);
  return file && (*file)->truncate(size / share_for_rows);
}

std::uint64_t Ballast::kept_bytes(std::uint64_t size) const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::held:
      return size;
    case State::halved:
      return size / share_for_rows;
    case State::released:
      break;
  }
  return 0;
}

bool Ballast::release_for_data() {
  const LockGuard lock(mutex_);
  granted_bytes_ = 0;
  if (!is_held()) return false;
  const auto space = directory_->space();
  if (!space || !shrink(size_for(space->total_bytes))) return release_locked();
  state_.store(State::halved, std::memory_order_release);
  return true;
}

bool Ballast::release_for_rows() {
  const LockGuard lock(mutex_);
  return release_locked();
}

bool Ballast::release_locked() {
  granted_bytes_ = 0;
  if (state_ == State::released) return false;
  state_.store(State::released, std::memory_order_release);
  if (const auto removed = directory_->remove(ballast_file); !removed) {
    spdlog::warn("the space kept in reserve cannot be released: {}", removed.error().message);
    return false;
  }
  // Some file systems give the room back only after a sync of the directory.
  static_cast<void>(directory_->sync_directory(""));
  return true;
}

Result<Ballast::Admission> Ballast::admit_data(std::uint64_t bytes,
                                               const std::function<std::uint64_t()>& dirty_bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  {
    // The bytes count as admitted before they are granted, so that no other thread misses them.
    Admission admission(admitted_bytes_, bytes);
    if (granted_bytes_.fetch_sub(wanted) >= wanted) return admission;
  }
  return admit_data_slowly(bytes, dirty_bytes);
}

Result<Ballast::Admission> Ballast::admit_data_slowly(
    std::uint64_t bytes, const std::function<std::uint64_t()>& dirty_bytes) {
  const LockGuard lock(mutex_);
  granted_bytes_ = 0;
  if (!is_held()) return full(*directory_);
  // The order matters: bytes are first admitted, then dirty, then on the disk. So none is missed.
  std::uint64_t unwritten_bytes = admitted_bytes();
  unwritten_bytes += dirty_bytes();
  const auto space = directory_->space();
  // If the space is unknown, the disk itself refuses what does not fit.
  if (!space) return Admission(admitted_bytes_, bytes);
  const std::uint64_t free = room(*space, unwritten_bytes);
  if (free < bytes) return full(*directory_);
  granted_bytes_ = static_cast<std::int64_t>(std::min((free - bytes) / 2, grant_bytes_max));
  return Admission(admitted_bytes_, bytes);
}

Ballast::Admission Ballast::take_data(std::uint64_t bytes) {
  has_taken_data_ = true;
  granted_bytes_ = 0;
  return Admission(admitted_bytes_, bytes);
}

Result<> Ballast::admit_name_of_dirty_file(const std::function<std::uint64_t()>& dirty_bytes) {
  if (!is_held()) return full(*directory_);
  if (!has_taken_data_) return {};
  const LockGuard lock(mutex_);
  std::uint64_t unwritten_bytes = admitted_bytes();
  unwritten_bytes += dirty_bytes();
  const auto space = directory_->space();
  if (!space) return {};
  if (!can_flush(*space, unwritten_bytes)) return full(*directory_);
  has_taken_data_ = false;
  return {};
}

bool Ballast::can_flush(const BackingSpace& space, std::uint64_t bytes) const {
  const std::uint64_t size = size_for(space.total_bytes);
  return space.available_bytes + kept_bytes(size) >= size / share_for_rows + bytes;
}

Result<> Ballast::admit_row() {
  if (is_held()) return {};
  const auto space = directory_->space();
  if (!space) return {};
  const std::uint64_t size = size_for(space->total_bytes);
  if (space->available_bytes + kept_bytes(size) >= size / share_for_rows) return {};
  return full(*directory_);
}

Result<> Ballast::admit_flush(std::uint64_t bytes) {
  if (is_held()) return {};
  const auto space = directory_->space();
  if (!space || can_flush(*space, bytes)) return {};
  return full(*directory_);
}

Result<> Ballast::admit_move(std::uint64_t bytes) {
  const LockGuard lock(mutex_);
  const auto space = directory_->space();
  if (!space) return {};
  const std::uint64_t size = size_for(space->total_bytes);
  const std::uint64_t kept = kept_bytes(size);
  const std::uint64_t needed_without = size / share_for_rows + cost_of_moving(bytes);
  const std::uint64_t needed =
      is_held() ? size / share_for_margin + cost_of_moving(bytes) : needed_without - kept;
  if (space->available_bytes >= needed) return {};
  if (is_held() && space->available_bytes + kept >= needed_without && release_locked()) {
    spdlog::info("{}: the space kept in reserve goes to compaction for a moment",
                 directory_->description());
    return {};
  }
  return full(*directory_);
}

}  // namespace nacre::fs
