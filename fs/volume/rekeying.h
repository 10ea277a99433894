// SPDX-License-Identifier: Apache-2.0
// What a rotation of keys asks of an open volume. In which order, fs/rotation knows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/space/compactor.h"
#include "fs/store/segment_store.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

// Thread-safe. Implemented by the volume; goes with it.
class Rekeying {
 public:
  virtual ~Rekeying() = default;

  // Past the commits: durable when it returns.
  virtual Result<> remember_rotation(const metadata::RotationRow& row) = 0;
  virtual Result<metadata::RotationRow> rotation_row() = 0;  // the default when there is none

  // busy while backups are under way: they would bring keyring and superblock of two states.
  virtual Result<> check_may_begin() = 0;
  // The keys have a new current epoch: all that is sealed from now on is under it.
  virtual Result<> begin_epoch() = 0;
  virtual void set_codec(engine::Codec codec, int level) = 0;  // of new records
  // Records of older epochs are compressed anew when they are moved.
  virtual void recompress_old_epochs() = 0;

  // Compactor::rekey(); read_only.
  virtual Result<RekeyStep> rekey_segments(const RekeyOrder& order) = 0;
  virtual OutdatedSegments outdated_segments() = 0;
  virtual bool vouches_for(metadata::SegmentNumber number) = 0;  // SegmentStore::vouches_for()
  // A checkpoint under the current epoch takes the place of those before.
  virtual Result<> renew_checkpoint() = 0;
  // Database::reseal().
  virtual Result<std::vector<std::string>> reseal_database(
      const std::function<Result<>()>& go_on) = 0;
  // Everything is durable, and what is empty is removed, durably so.
  virtual Result<> settle() = 0;
  virtual unsigned backup_count() = 0;
};

}  // namespace nacre::fs
