// SPDX-License-Identifier: Apache-2.0
// Which records are genuine when a rotation of keys begins: the digest of each is put into a row,
// before anybody can be shut out by newer keys. Afterwards a record of an older epoch counts only
// with its digest (record_keys.h): whoever had that epoch's key can seal what he likes under it,
// and make its tag what it was. docs/FORMAT.md, "Records of older epochs".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "fs/store/record_keys.h"
#include "fs/store/segment_table.h"

namespace nacre::fs {

// Not thread-safe. What it is given outlives it.
class GenuineRecords {
 public:
  GenuineRecords(SegmentTable& table, metadata::Database& database, const RecordKeys& keys)
      : table_(table), database_(database), keys_(keys) {}

  // Looks at what was appended since the last call, in all segments, and makes the digests durable.
  // Others may append meanwhile. Damaged records have none, nor has what only looks like a record
  // and may reach over genuine ones. go_on is asked now and then; its error
  // ends the call. Errors: corrupt (so much looks like records that genuine
  // ones might be overlooked), io, no_space, and the database's.
  Result<> survey(const std::function<Result<>()>& go_on);
  // Behind the last survey, while nobody appends: from now on records of epochs below this one
  // count only with their digest.
  Result<> complete(std::uint32_t epoch);

 private:
  class Walk;
  Result<> flush();

  SegmentTable& table_;
  metadata::Database& database_;
  const RecordKeys& keys_;
  std::map<metadata::SegmentNumber, std::uint64_t> walked_;  // up to this offset
  std::vector<metadata::Database::Row> rows_;                // not written yet
};

// Removes these rows, when the keyring has no older epoch any more. commit makes what was erased
// durable.
Result<> forget_genuine_records(metadata::Database& database,
                                const std::function<Result<>()>& commit);

}  // namespace nacre::fs
