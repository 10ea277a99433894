// SPDX-License-Identifier: Apache-2.0
// Finds the listings that a change overtook.
#include "fs/fuse/listings.h"

#include <algorithm>

namespace nacre::fs {

void Listings::changed(metadata::InodeNumber directory) {
  const LockGuard lock(mutex_);
  const auto found = directories_.find(directory.value);
  if (found != directories_.end()) ++found->second.version;
}

void Listings::give(metadata::InodeNumber directory, pid_t process, bool is_first) {
  const LockGuard lock(mutex_);
  const auto [place, is_new] = directories_.try_emplace(directory.value);
  Directory& state = place->second;
  // The directory was unknown until now.
  if (is_new && !is_first) state = {.version = 1, .oldest = 0, .listings = {}};
  state.oldest = std::min(state.oldest, state.version);
  if (!is_first || process == 0) return;
  const auto known = std::find_if(state.listings.begin(), state.listings.end(),
                                  [&](const Listing& each) { return each.process == process; });
  if (known != state.listings.end()) {
    known->version = none;
    return;
  }
  if (state.listings.size() == listing_count_max) state.listings.erase(state.listings.begin());
  state.listings.push_back({process, state.version});
}

bool Listings::end(metadata::InodeNumber directory, pid_t process) {
  const LockGuard lock(mutex_);
  const auto found = directories_.find(directory.value);
  if (found == directories_.end()) return true;
  Directory& state = found->second;
  std::uint64_t began = none;
  const auto known = std::find_if(state.listings.begin(), state.listings.end(),
                                  [&](const Listing& each) { return each.process == process; });
  if (known != state.listings.end()) {
    began = known->version;
    state.listings.erase(known);
  }
  if (state.oldest < state.version) {
    state.oldest = state.version;
    return true;
  }
  // The listing is whole and undisturbed. So the kernel's copy is complete, no matter which process
  // began it.
  if (began == state.version) state.oldest = none;
  return false;
}

void Listings::forget(metadata::InodeNumber directory) noexcept {
  const LockGuard lock(mutex_);
  directories_.erase(directory.value);
}

}  // namespace nacre::fs
