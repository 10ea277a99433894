// SPDX-License-Identifier: Apache-2.0
#include "fs/space/room.h"

#include <utility>

#include <spdlog/spdlog.h>

namespace nacre::fs {

using metadata::Table;

namespace {

std::string key_of(InodeNumber inode) {
  return metadata::xattr_key(metadata::root_inode, metadata::reserved_name(inode));
}

}  // namespace

Result<> Room::load(const metadata::Database& database) {
  const std::string begin =
      metadata::xattr_key(metadata::root_inode, metadata::reserved_name_prefix);
  const std::size_t name_at = begin.size() - metadata::reserved_name_prefix.size();
  std::unordered_map<std::uint64_t, metadata::ReservedRow> found;
  NACRE_TRY(database.scan(
      Table::xattrs, begin, metadata::prefix_end(begin),
      [&](std::string_view key, std::string_view value) {
        const auto inode = metadata::decode_reserved_name(key.substr(name_at));
        auto row = metadata::decode_reserved_row(value);
        if (inode && row) {
          found.emplace(inode->value, std::move(*row));
        } else {
          spdlog::warn("what is set aside for a file cannot be read, and counts as nothing: {}",
                       inode ? row.error().message : inode.error().message);
        }
        return true;
      }));
  for (const auto& [number, row] : found) {
    NACRE_ASSIGN(const auto inode,
                 database.get(Table::inodes, metadata::inode_key(InodeNumber{number})));
    if (!inode) continue;
    const auto reservation = std::make_shared<Reservation>(row);
    ballast_.change_promises(
        static_cast<std::int64_t>(row.held_bytes),
        static_cast<std::int64_t>(worst_case_bytes(reservation->chunk_count())));
    files_.emplace(number, reservation);
  }
  count_ = files_.size();
  return {};
}

std::shared_ptr<Reservation> Room::find(InodeNumber inode) const {
  if (count_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto place = files_.find(inode.value);
  return place == files_.end() ? nullptr : place->second;
}

std::shared_ptr<Reservation> Room::find_or_make(InodeNumber inode) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Reservation>& reservation = files_[inode.value];
  if (!reservation) reservation = std::make_shared<Reservation>();
  count_.store(files_.size(), std::memory_order_release);
  return reservation;
}

void Room::stage(InodeNumber inode, metadata::Database& database) {
  const auto reservation = find(inode);
  if (!reservation || !reservation->take_changed()) return;
  if (reservation->is_empty()) {
    database.erase(Table::xattrs, key_of(inode));
  } else {
    database.put(Table::xattrs, key_of(inode), metadata::encode(reservation->row()));
  }
}

void Room::erase(InodeNumber inode, metadata::Database& database) {
  if (!find(inode)) return;
  database.erase(Table::xattrs, key_of(inode));
  const std::lock_guard lock(mutex_);
  files_.erase(inode.value);
  count_.store(files_.size(), std::memory_order_release);
}

Result<> Room::claim(std::uint64_t held_bytes, std::uint64_t chunk_count,
                     const std::function<std::uint64_t()>& dirty_bytes) {
  return ballast_.admit_promise(held_bytes, worst_case_bytes(chunk_count), dirty_bytes);
}

void Room::give_back(std::uint64_t held_bytes, std::uint64_t chunk_count) {
  ballast_.change_promises(-static_cast<std::int64_t>(held_bytes),
                           -static_cast<std::int64_t>(worst_case_bytes(chunk_count)));
}

void Room::change(Reservation& reservation, const HeldChange& change) {
  reservation.change(change);
  ballast_.change_promises(change.held, 0);
}

void Room::add(Reservation& reservation, const ChunkRange& range, const HeldChange& held) {
  reservation.add(range.first, range.end());
  reservation.change(held);
  ballast_.change_promises(held.held, static_cast<std::int64_t>(worst_case_bytes(range.count)));
}

void Room::remove(Reservation& reservation, const ChunkRange& range, const HeldChange& held) {
  HeldChange less;
  less -= held;
  reservation.remove(range.first, range.end());
  reservation.change(less);
  ballast_.change_promises(less.held, -static_cast<std::int64_t>(worst_case_bytes(range.count)));
}

}  // namespace nacre::fs
