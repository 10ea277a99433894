// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/refused_pages.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nacre::fs {

using metadata::InodeNumber;

bool RefusedPages::note(InodeNumber inode, Range range, ErrorCode error) {
  const LockGuard lock(mutex_);
  const auto place = files_.try_emplace(inode.value).first;
  count_ = files_.size();
  auto& ranges = place->second.ranges;
  place->second.error = error;
  auto touching = ranges.upper_bound(range.begin);
  if (touching != ranges.begin() && std::prev(touching)->second >= range.begin) --touching;
  while (touching != ranges.end() && touching->first <= range.end) {
    range.begin = std::min(range.begin, touching->first);
    range.end = std::max(range.end, touching->second);
    touching = ranges.erase(touching);
  }
  ranges.emplace(range.begin, range.end);
  if (ranges.size() > range_count_max) {
    const std::uint64_t begin = ranges.begin()->first, end = ranges.rbegin()->second;
    ranges = {{begin, end}};
  }
  return !std::exchange(place->second.is_being_dropped, true);
}

std::vector<RefusedPages::Range> RefusedPages::take(InodeNumber inode) {
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end()) return {};
  File& file = place->second;
  if (file.ranges.empty()) {
    files_.erase(place);
    count_ = files_.size();
    return {};
  }
  if (file.round_count == round_count_max) {
    file.round_count = 0;
    file.is_being_dropped = false;
    return {};
  }
  ++file.round_count;
  std::vector<Range> taken;
  taken.reserve(file.ranges.size());
  for (const auto& [begin, end] : file.ranges)
    taken.push_back({begin, end});
  file.ranges.clear();
  return taken;
}

std::optional<RefusedPages::Refusal> RefusedPages::ask(InodeNumber inode) {
  if (count_ == 0) return std::nullopt;
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end()) return std::nullopt;
  File& file = place->second;
  return Refusal{.error = file.error,
                 .is_to_be_dropped = !std::exchange(file.is_being_dropped, true)};
}

void RefusedPages::give_up(InodeNumber inode) {
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place != files_.end()) place->second.is_being_dropped = false;
}

void RefusedPages::forget(InodeNumber inode) noexcept {
  if (count_ == 0) return;
  const LockGuard lock(mutex_);
  const auto place = files_.find(inode.value);
  if (place == files_.end() || place->second.is_being_dropped) return;  // the drop removes it
  files_.erase(place);
  count_ = files_.size();
}

}  // namespace nacre::fs
