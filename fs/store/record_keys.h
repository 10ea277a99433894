// SPDX-License-Identifier: Apache-2.0
// The keys of a volume's records: of the write sessions that its tables know, and of no others. A
// copy of the volume that went its own way (a restored backup, a copy that was mounted) has the
// same epoch keys, the same inode numbers and the same versions, but sessions with salts of its
// own; their records open under these keys all the same, and have no place here.
#pragma once

#include <map>
#include <memory>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/record/record.h"
#include "metadata/keys/keys.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// Thread-safe. The database outlives it.
class RecordKeys {
 public:
  RecordKeys(const metadata::Database& database, std::shared_ptr<const metadata::KeyTree> keys)
      : database_(database), keys_(std::move(keys)) {}

  const engine::VolumeId& volume_id() const { return keys_->volume_id(); }

  // The key that opens the record, whose header this is. Errors: tampered where no session of this
  // salt and epoch has a row, and where keys are rotated and the record is of an older epoch, but
  // not one that was there when that began (genuine_records.h), unless the record's CRC is wrong
  // too; corrupt where that, or the row, is, or where the epoch is not in the keyring; the
  // database's own.
  Result<std::shared_ptr<const metadata::KeyTree::SessionKey>> find(
      const engine::RecordHeader& header, ByteView record) const;

  // Of a session that has just got its row, and of one that a repair is about to give one.
  void admit(const engine::SessionSalt& salt, std::uint32_t epoch);

 private:
  Result<> check_session(const engine::RecordHeader& header) const;
  Result<> check_digest(const engine::RecordHeader& header, ByteView record) const;

  const metadata::Database& database_;
  const std::shared_ptr<const metadata::KeyTree> keys_;
  mutable Mutex mutex_;
  // Sessions found before, each with its epoch. A row of a session never goes away, and there is
  // about one session a mount.
  mutable std::map<engine::SessionSalt, std::uint32_t> known_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
