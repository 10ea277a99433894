// SPDX-License-Identifier: Apache-2.0
// What a rotation of keys needs of the volume.
#include <fmt/format.h>

#include "fs/volume/volume_impl.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

using metadata::Table;

Rekeying* VolumeImpl::rekeying() {
  return options_.read_only ? nullptr : this;
}

Result<> VolumeImpl::remember_rotation(const metadata::RotationRow& row) {
  return database_->put_now(Table::system,
                            {{std::string(metadata::system_key_rotation), metadata::encode(row)}});
}

Result<metadata::RotationRow> VolumeImpl::rotation_row() {
  NACRE_ASSIGN(const auto value, database_->get(Table::system, metadata::system_key_rotation));
  if (!value) return metadata::RotationRow{};
  return metadata::decode_rotation_row(*value);
}

Result<> VolumeImpl::check_may_begin() {
  NACRE_TRY(check_writable());
  if (backups_.count() == 0) return {};
  return fail(ErrorCode::busy,
              "a backup of this volume is under way, and would bring half of each key: try again "
              "when it is done");
}

Result<> VolumeImpl::begin_epoch() {
  return store_->begin_epoch();
}

void VolumeImpl::set_codec(engine::Codec codec, int level) {
  store_->set_codec(codec, level);
}

void VolumeImpl::recompress_old_epochs() {
  store_->recompress_old_epochs();
}

Result<RekeyStep> VolumeImpl::rekey_segments(const RekeyOrder& order) {
  NACRE_TRY(check_writable());
  return compactor_.rekey(order);
}

// What never fitted has no predecessor that would have to go.
Result<> VolumeImpl::renew_checkpoint() {
  const auto written = write_checkpoint(CheckpointKeep::only_this);
  if (written || written.error().code == ErrorCode::too_big) return {};
  if (written.error().code != ErrorCode::no_space) return tl::unexpected(written.error());
  return fail(ErrorCode::no_space,
              fmt::format("{}: no room on the disk for the checkpoint that a rotation writes under "
                          "the new key. Nothing is lost: both keys stay. Make room there or delete "
                          "files; a mounted volume then goes on by itself, for one that is not run "
                          "'nacre key rotate' again",
                          directory_->description()));
}

OutdatedSegments VolumeImpl::outdated_segments() {
  return store_->outdated();
}

bool VolumeImpl::vouches_for(metadata::SegmentNumber number) {
  return store_->vouches_for(number);
}

Result<std::vector<std::string>> VolumeImpl::reseal_database(
    const std::function<Result<>()>& go_on) {
  NACRE_TRY(check_writable());
  return database_->reseal(go_on);
}

// The first commit removes what is empty, the sync makes that durable whether or not another commit
// follows.
Result<> VolumeImpl::settle() {
  NACRE_TRY(committer_.commit(CommitScope{.everything = true}));
  NACRE_TRY(directory_->sync_directory(metadata::segment_folder));
  return directory_->sync_directory(metadata::database_folder);
}

unsigned VolumeImpl::backup_count() {
  return backups_.count();
}

}  // namespace nacre::fs
