// SPDX-License-Identifier: Apache-2.0
// Which of the records that open under a volume's keys may stand in for lost rows of db/. A tag
// says that a record was sealed with a key of the volume. But a copy of the volume that was written
// to has the same keys, and a former recipient has the older ones.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "fs/salvage/salvage_checkpoint.h"
#include "fs/salvage/salvage_scan.h"
#include "metadata/keys/keys.h"
#include "metadata/rescue/database_rescue.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// Not thread-safe. Everything passed by reference outlives it.
class OwnRecords {
 public:
  // database has the rows that could be rescued. It is read anew by each call.
  OwnRecords(const metadata::Database& database, const metadata::DatabaseRescue& rescue,
             const metadata::KeyTree& keys, std::string description)
      : database_(database), rescue_(rescue), keys_(keys), description_(std::move(description)) {}

  // Drops the records of write sessions that rows do not know, unless their rows may be lost.
  Result<> keep_known_sessions(FoundRecords& records);
  // Drops, of checkpoints, the records of older epochs without the digest that the beginning of a
  // rotation made of each (genuine_check.h).
  Result<> keep_proven_checkpoints(FoundRecords& records, RecordOpener& opener) const {
    return drop_unproven(records, opener, false, {});
  }
  // The same of files' content. Error: tampered if a digest may be lost of a record that may count:
  // the content is then not given up.
  Result<> keep_proven_content(FoundRecords& records, RecordOpener& opener,
                               const std::function<bool(const FoundRecord&)>& may_count) const {
    return drop_unproven(records, opener, true, may_count);
  }
  // The rows of sessions may be lost, and then a checkpoint of another branch of history is not
  // told by its own session. Error: tampered if sessions of the volume contradict the checkpoint.
  Result<> check_history(const FoundRecords& records, const FoundCheckpoint& checkpoint) const;

 private:
  Result<> note_sessions();
  bool may_be_own(const FoundRecords& records, std::uint32_t session, std::uint64_t ordinal) const;
  Result<> drop_unproven(FoundRecords& records, RecordOpener& opener, bool of_files,
                         const std::function<bool(const FoundRecord&)>& may_count) const;

  const metadata::Database& database_;
  const metadata::DatabaseRescue& rescue_;
  const metadata::KeyTree& keys_;
  const std::string description_;
  // Write sessions that are the volume's own, as rows say, with their epochs.
  std::map<engine::SessionSalt, std::uint32_t> sessions_;
  std::map<std::uint64_t, metadata::SessionRow> session_rows_;  // by ordinal
};

}  // namespace nacre::fs
