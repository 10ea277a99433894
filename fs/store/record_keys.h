// SPDX-License-Identifier: Apache-2.0
// The keys of a volume's records: the keys of the write sessions that the volume's tables know, and
// no others. A copy of the volume that was written to (a restored backup, or a copy that was
// mounted) has the same epoch keys, the same inode numbers and the same versions, but its sessions
// have salts of their own. Their records would open under these keys too, but they do not belong to
// this volume.
#pragma once

#include <atomic>
#include <map>
#include <memory>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/aead.h"
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

  // Returns the key that opens the record with this header. Call it for each record: one record of
  // a session may count and another one not. Errors:
  //   tampered  No session of this salt and epoch has a row. Or the record is of an older epoch,
  //             the current one is of format 2, and these bytes were not there when the rotation
  //             began (genuine_check.h). Or they are not those that a survey found (heed_survey()).
  //   corrupt   The record would be tampered, but its CRC is wrong, too; or the session's row is
  //             damaged; or the epoch is not in the keyring.
  // Other errors are those of the database.
  Result<std::shared_ptr<const metadata::KeyTree::SessionKey>> find(
      const engine::RecordHeader& header, ByteView record) const;

  // Checks a record whose CRC is right: its key, its tag and its digest. Errors: those of find(),
  // and tampered if the tag is wrong. opener holds the key of the last record, for the next record
  // of the same session.
  struct Opener {
    std::shared_ptr<const metadata::KeyTree::SessionKey> session;
    std::shared_ptr<const engine::AeadKey> key;
  };
  Result<> authenticate(const engine::RecordHeader& header, ByteView record, Opener& opener) const;

  // Makes a session known that has just got its row, or that a repair is about to give a row.
  void admit(const engine::SessionSalt& salt, std::uint32_t epoch);

  // While a survey makes digests (docs/FORMAT.md, "Records of older epochs"), a record of the
  // current epoch that has one already counts only if its bytes have that digest.
  void heed_survey(bool is_under_way) { is_surveyed_ = is_under_way; }

 private:
  Result<> check_session(const engine::RecordHeader& header) const;
  Result<> check_digest(const engine::RecordHeader& header, ByteView record) const;
  Result<> check_surveyed(const engine::RecordHeader& header, ByteView record) const;

  const metadata::Database& database_;
  const std::shared_ptr<const metadata::KeyTree> keys_;
  std::atomic<bool> is_surveyed_{false};
  mutable Mutex mutex_;
  // Sessions found before, each with its epoch. A session's row is never removed, and a mount
  // usually has one session.
  mutable std::map<engine::SessionSalt, std::uint32_t> known_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
