// SPDX-License-Identifier: Apache-2.0
// What is known of the current manifest.
#include "metadata/sealed_fs/manifest_state.h"

#include <algorithm>

#include "metadata/sealed_fs/reseal_files.h"

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

void ManifestState::write_failed(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  failed_ = std::max(failed_, number);
}

bool ManifestState::may_name_lost_tables() const {
  std::lock_guard lock(mutex_);
  return failed_ != 0 && durable_ <= failed_;
}

Result<void> ManifestWriter::note(Result<void> written) {
  if (!written) {
    has_failed_ = true;
    state_->write_failed(number_);
  }
  return written;
}

Result<void> ManifestWriter::append(ByteView bytes) {
  std::lock_guard lock(mutex_);
  return note(frames_->append(bytes));
}

Result<void> ManifestWriter::flush() {
  std::lock_guard lock(mutex_);
  return note(frames_->flush());
}

Result<void> ManifestWriter::close() {
  std::lock_guard lock(mutex_);
  if (has_failed_) return {};
  return note(frames_->close());
}

// What is appended since the last sync would be no more durable than before, but is counted as it
// stands: so it is synced first.
Result<void> ManifestWriter::reseal(BackingDirectory& directory, const KeyTree& keys,
                                    const std::function<Result<void>()>& replaced) {
  std::lock_guard lock(mutex_);
  NACRE_TRY(frames_->sync());
  NACRE_ASSIGN(auto fresh, reseal_frames_file(directory, frames_->path(), keys));
  if (!fresh) return {};
  frames_->continue_in(std::move(fresh->seal), std::move(fresh->file));
  return replaced();
}

Result<void> ManifestWriter::sync() {
  std::lock_guard lock(mutex_);
  NACRE_TRY(note(frames_->sync()));
  state_->manifest_synced(number_, frames_->synced_frames());
  return {};
}

}  // namespace nacre::metadata
