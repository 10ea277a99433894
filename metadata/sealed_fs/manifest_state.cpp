// SPDX-License-Identifier: Apache-2.0
// What is known of the current manifest.
#include "metadata/sealed_fs/manifest_state.h"

namespace nacre::metadata {

void ManifestState::set(Durable durable) {
  std::lock_guard lock(mutex_);
  frames_[durable.number] = durable.frames;
  renamed_ = durable_ = durable.number;
}

void ManifestState::manifest_synced(std::uint64_t number, std::uint64_t frames) {
  std::lock_guard lock(mutex_);
  frames_[number] = frames;
}

void ManifestState::current_renamed() {
  std::lock_guard lock(mutex_);
  if (!frames_.empty())
    renamed_ = frames_.rbegin()->first;  // the newest is what it was renamed for
}

void ManifestState::folder_synced() {
  std::lock_guard lock(mutex_);
  durable_ = renamed_;
  frames_.erase(frames_.begin(), frames_.lower_bound(durable_));
}

ManifestState::Durable ManifestState::durable() const {
  std::lock_guard lock(mutex_);
  const auto found = frames_.find(durable_);
  return found == frames_.end() ? Durable{} : Durable{found->first, found->second};
}

Result<void> ManifestWriter::sync() {
  NACRE_TRY(frames_->sync());
  state_->manifest_synced(number_, frames_->synced_frames());
  return {};
}

}  // namespace nacre::metadata
