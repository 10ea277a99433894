// SPDX-License-Identifier: Apache-2.0
// Which records are genuine when a rotation of keys begins. The digest of each record is put into a
// row before the newer keys shut out a holder of the older ones. Afterwards a record of an older
// epoch counts only with its digest (record_keys.h): an attacker who had that epoch's key can seal
// anything under it, and can give it the tag that the genuine record had. docs/FORMAT.md, "Records
// of older epochs".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "fs/store/record_keys.h"
#include "fs/store/segment_table.h"

namespace nacre::fs {

// Not thread-safe. Everything passed by reference outlives it.
class GenuineRecords {
 public:
  GenuineRecords(SegmentTable& table, metadata::Database& database, const RecordKeys& keys)
      : table_(table), database_(database), keys_(keys) {}

  // Looks at the records that were appended to any segment since the last call, and makes their
  // digests durable. Other threads may append during the call. Damaged records get no digest, and
  // neither do bytes that only look like a record and may reach over genuine ones. go_on is asked
  // now and then, and its error ends the call. Other errors: corrupt if too many bytes look like
  // records, so that genuine ones might be overlooked; io, no_space, and those of the database.
  Result<> survey(const std::function<Result<>()>& go_on);
  // Called after the last survey, while no thread can append. From now on records of epochs below
  // this one count only with their digest.
  Result<> complete(std::uint32_t epoch);

 private:
  class Walk;
  Result<> flush();

  SegmentTable& table_;
  metadata::Database& database_;
  const RecordKeys& keys_;
  std::map<metadata::SegmentNumber, std::uint64_t> walked_;  // up to this offset
  std::vector<metadata::Database::Row> rows_;                // rows that are not written yet
};

// Removes these rows, once the keyring has no older epoch any more. commit makes their removal
// durable.
Result<> forget_genuine_records(metadata::Database& database,
                                const std::function<Result<>()>& commit);

}  // namespace nacre::fs
