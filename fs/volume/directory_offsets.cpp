// SPDX-License-Identifier: Apache-2.0
#include "fs/volume/directory_offsets.h"

namespace nacre::fs {

namespace {

constexpr unsigned short_bit_count = 30;
constexpr unsigned lower_bit_count = 63 - short_bit_count;
constexpr std::uint64_t ticket_bit = std::uint64_t{1} << short_bit_count;
constexpr std::uint64_t short_mask = ticket_bit - 1;
constexpr std::uint64_t lower_mask = (std::uint64_t{1} << lower_bit_count) - 1;

bool has_offset_without_ticket(std::uint64_t place) {
  return (place & lower_mask) == lower_mask &&
         place >> lower_bit_count > DirectoryOffsets::offset_dot_dot;
}

}  // namespace

std::uint64_t DirectoryOffsets::place_behind(std::uint64_t hash,
                                             std::optional<std::uint64_t> next) {
  const std::uint64_t upper = hash >> lower_bit_count;
  const bool is_last_of_upper = next && *next >> lower_bit_count != upper;
  return is_last_of_upper && upper > offset_dot_dot ? hash | lower_mask : hash;
}

std::uint64_t DirectoryOffsets::offset_of(metadata::InodeNumber directory, std::uint64_t place,
                                          std::uint64_t before) {
  if (place <= offset_dot_dot) return place;
  if (has_offset_without_ticket(place)) return place >> lower_bit_count;
  const std::uint64_t ticket = ticket_bit | (place & short_mask);
  const Key key{directory.value, ticket};
  LockGuard lock(mutex_);
  const auto [at, is_new] = places_.try_emplace(key, place);
  if (!is_new) return at->second == place ? ticket : before;
  oldest_first_.push_back(key);
  if (oldest_first_.size() > count_max_) {
    places_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
  return ticket;
}

std::optional<std::uint64_t> DirectoryOffsets::place_of(metadata::InodeNumber directory,
                                                        std::uint64_t offset) {
  if (offset <= offset_dot_dot) return offset;
  if (!is_ticket(offset)) return offset << lower_bit_count | lower_mask;
  LockGuard lock(mutex_);
  const auto at = places_.find(Key{directory.value, offset});
  return at == places_.end() ? std::nullopt : std::optional(at->second);
}

bool DirectoryOffsets::is_ticket(std::uint64_t offset) {
  return (offset & ticket_bit) != 0;
}

bool DirectoryOffsets::has_ticket(std::uint64_t hash, std::uint64_t ticket) {
  return (hash & short_mask) == (ticket & short_mask);
}

}  // namespace nacre::fs
