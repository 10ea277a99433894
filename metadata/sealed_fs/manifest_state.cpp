// SPDX-License-Identifier: Apache-2.0
// Tracks the current manifest.
#include "metadata/sealed_fs/manifest_state.h"

#include <algorithm>

#include "metadata/sealed_fs/reseal_files.h"

namespace nacre::metadata {

void ManifestState::Durable::write_to(LogWitness& witness) const {
  witness.manifest = number;
  witness.manifest_frames = frames;
  witness.manifest_salt = salt;
  witness.manifest_tag = tag;
}

void ManifestState::set(const Durable& durable) {
  LockGuard lock(mutex_);
  synced_[durable.number] = durable;
  renamed_ = durable_ = durable.number;
}

void ManifestState::manifest_synced(const Durable& synced) {
  LockGuard lock(mutex_);
  synced_[synced.number] = synced;
}

void ManifestState::current_renamed() {
  LockGuard lock(mutex_);
  if (!synced_.empty())
    renamed_ = synced_.rbegin()->first;  // CURRENT was renamed for the newest manifest
}

void ManifestState::folder_synced() {
  LockGuard lock(mutex_);
  durable_ = renamed_;
  synced_.erase(synced_.begin(), synced_.lower_bound(durable_));
}

ManifestState::Durable ManifestState::durable() const {
  LockGuard lock(mutex_);
  const auto found = synced_.find(durable_);
  return found == synced_.end() ? Durable{} : found->second;
}

void ManifestState::write_failed(std::uint64_t number) {
  LockGuard lock(mutex_);
  failed_ = std::max(failed_, number);
}

bool ManifestState::may_name_lost_tables() const {
  LockGuard lock(mutex_);
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
  LockGuard lock(mutex_);
  return note(frames_->append(bytes));
}

Result<void> ManifestWriter::flush() {
  LockGuard lock(mutex_);
  return note(frames_->flush());
}

Result<void> ManifestWriter::close() {
  LockGuard lock(mutex_);
  if (has_failed_) return {};
  return note(frames_->close());
}

// The new file is durable, and all its frames count. So what was appended since the last sync is
// synced first.
Result<void> ManifestWriter::reseal(BackingDirectory& directory, const KeyTree& keys,
                                    engine::Padding padding, const ManifestLink& link,
                                    const std::function<Result<void>()>& replaced) {
  LockGuard lock(mutex_);
  NACRE_TRY(frames_->sync());
  NACRE_ASSIGN(auto fresh, reseal_frames_file(directory, frames_->path(), keys, padding,
                                              {.link = link, .expected = frames_->synced_end()}));
  if (!fresh) return {};
  frames_->continue_in(std::move(*fresh));
  NACRE_TRY(replaced());
  note_synced();
  return {};
}

Result<FrameWriter::Replacement> ManifestWriter::make_resealed(BackingDirectory& directory,
                                                               const KeyTree& keys, FileSeal to,
                                                               const ManifestLink& link) {
  LockGuard lock(mutex_);
  NACRE_TRY(note(frames_->sync()));
  return make_resealed_frames(directory, frames_->path(), keys, std::move(to),
                              {.link = link, .expected = frames_->synced_end()});
}

void ManifestWriter::replace(FrameWriter::Replacement replacement) {
  LockGuard lock(mutex_);
  frames_->continue_in(std::move(replacement));
  note_synced();
}

Result<void> ManifestWriter::sync() {
  LockGuard lock(mutex_);
  NACRE_TRY(note(frames_->sync()));
  note_synced();
  return {};
}

void ManifestWriter::note_synced() {
  state_->manifest_synced({.number = number_,
                           .frames = frames_->synced_frames(),
                           .salt = frames_->header().salt,
                           .tag = frames_->synced_tag()});
}

}  // namespace nacre::metadata
