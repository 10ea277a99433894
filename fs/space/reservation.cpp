// SPDX-License-Identifier: Apache-2.0
#include "fs/space/reservation.h"

#include <algorithm>
#include <iterator>

namespace nacre::fs {

namespace {

// Headers, tags and rows: a sixteenth of a chunk, and this for small ones.
constexpr std::uint64_t overhead_bytes_min = 512;
constexpr std::uint64_t overhead_share = 16;

std::uint64_t not_negative(std::int64_t value) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
}

std::uint64_t stored_bytes_of(const metadata::ChunkRow& row) {
  std::uint64_t sum = row.base ? row.base->location.stored_size : 0;
  for (const metadata::ChunkPatch& patch : row.patches)
    sum += patch.location ? patch.location->stored_size : 0;
  return sum;
}

}  // namespace

HeldChange& HeldChange::operator+=(const HeldChange& other) {
  held += other.held;
  unwritten += other.unwritten;
  return *this;
}

HeldChange& HeldChange::operator-=(const HeldChange& other) {
  held -= other.held;
  unwritten -= other.unwritten;
  return *this;
}

std::uint64_t worst_case_bytes(std::uint32_t chunk_size_bytes) {
  return chunk_size_bytes + std::max(chunk_size_bytes / overhead_share, overhead_bytes_min);
}

HeldChange held_for(const MappedChunk& chunk, std::uint32_t chunk_size_bytes) {
  const std::uint64_t worst = worst_case_bytes(chunk_size_bytes);
  const std::uint64_t stored = chunk.hole ? 0 : std::min(stored_bytes_of(chunk.row), worst);
  const std::uint64_t written =
      chunk.hole ? 0 : std::min<std::uint64_t>(content_end(chunk.row), chunk_size_bytes);
  return {.held = static_cast<std::int64_t>(worst - stored),
          .unwritten = static_cast<std::int64_t>(chunk_size_bytes - written)};
}

Reservation::Reservation(const metadata::ReservedRow& row)
    : held_(static_cast<std::int64_t>(row.held_bytes)),
      unwritten_(static_cast<std::int64_t>(row.unwritten_bytes)) {
  std::uint64_t count = 0;
  for (const ChunkRange& range : row.ranges) {
    ranges_[range.first] = range.end();
    count += range.count;
  }
  chunk_count_ = count;
}

bool Reservation::has(std::uint64_t index) const {
  return covers(index, index + 1);
}

bool Reservation::covers(std::uint64_t first, std::uint64_t end) const {
  const auto next = ranges_.upper_bound(first);
  return next != ranges_.begin() && std::prev(next)->second >= end;
}

std::vector<ChunkRange> Reservation::inside(std::uint64_t first, std::uint64_t end) const {
  std::vector<ChunkRange> parts;
  if (first >= end) return parts;
  auto place = ranges_.upper_bound(first);
  if (place != ranges_.begin() && std::prev(place)->second > first) --place;
  for (; place != ranges_.end() && place->first < end; ++place) {
    const std::uint64_t from = std::max(place->first, first);
    parts.push_back({from, std::min(place->second, end) - from});
  }
  return parts;
}

std::vector<ChunkRange> Reservation::outside(std::uint64_t first, std::uint64_t end) const {
  std::vector<ChunkRange> parts;
  for (const ChunkRange& taken : inside(first, end)) {
    if (taken.first > first) parts.push_back({first, taken.first - first});
    first = taken.end();
  }
  if (first < end) parts.push_back({first, end - first});
  return parts;
}

void Reservation::add(std::uint64_t first, std::uint64_t end) {
  for (const ChunkRange& part : outside(first, end))
    chunk_count_ += part.count;
  auto place = ranges_.upper_bound(first);
  if (place != ranges_.begin() && std::prev(place)->second >= first) --place;
  while (place != ranges_.end() && place->first <= end) {
    first = std::min(first, place->first);
    end = std::max(end, place->second);
    place = ranges_.erase(place);
  }
  ranges_[first] = end;
  changed_ = true;
}

void Reservation::remove(std::uint64_t first, std::uint64_t end) {
  for (const ChunkRange& part : inside(first, end)) {
    chunk_count_ -= part.count;
    const auto place = std::prev(ranges_.upper_bound(part.first));
    const std::uint64_t last = place->second;
    if (place->first == part.first) {
      ranges_.erase(place);
    } else {
      place->second = part.first;
    }
    if (part.end() < last) ranges_[part.end()] = last;
    changed_ = true;
  }
}

void Reservation::change(const HeldChange& change) {
  if (change.held == 0 && change.unwritten == 0) return;
  held_ += change.held;
  unwritten_ += change.unwritten;
  changed_ = true;
}

std::uint64_t Reservation::held_bytes() const {
  return not_negative(held_);
}

std::uint64_t Reservation::unwritten_bytes() const {
  return not_negative(unwritten_);
}

metadata::ReservedRow Reservation::row() const {
  metadata::ReservedRow row{
      .held_bytes = held_bytes(), .unwritten_bytes = unwritten_bytes(), .ranges = {}};
  for (const auto& [first, end] : ranges_)
    row.ranges.push_back({first, end - first});
  return row;
}

}  // namespace nacre::fs
