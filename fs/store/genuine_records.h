// SPDX-License-Identifier: Apache-2.0
// Which records are genuine when a rotation of keys begins. The digest of each record is put into a
// row before the newer keys shut out a holder of the older ones. Afterwards a record of an older
// epoch counts only with its digest (record_keys.h): an attacker who had that epoch's key can seal
// anything under it, and can give it the tag that the genuine record had. docs/FORMAT.md, "Records
// of older epochs".
//
// A survey makes these digests while the volume is in use, and no other thread waits for it. The
// segments that were there when it began are read from the medium. What is appended later gets its
// digest from memory, before it is written. A digest that was made is never replaced: from then on
// the record counts only with it, so bytes that an attacker changes on the medium later stay a
// forgery.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <vector>

#include "fs/store/record_keys.h"
#include "fs/store/segment_table.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

struct SurveyOrder {
  // Called with the number of bytes that were read since the last call. Its error ends the call.
  std::function<Result<>(std::uint64_t bytes)> go_on;
  // Makes durable what the database's groups have. It bounds the rows that wait in memory.
  std::function<Result<>()> commit;
};

// Thread-safe, except that only one thread at a time surveys. Everything passed by reference
// outlives it.
class GenuineRecords {
 public:
  GenuineRecords(SegmentTable& table, metadata::Database& database, RecordKeys& keys)
      : table_(table), database_(database), keys_(keys) {}

  // For SegmentStore, while no thread can append and no segment is open for append. The segments
  // that are there now are to be surveyed, and records that are appended later are noted.
  void begin() NACRE_EXCLUDES(mutex_);
  void end() NACRE_EXCLUDES(mutex_);
  bool is_active() const { return is_active_; }
  // Bytes of the segments that were there when the survey began.
  std::uint64_t total_bytes() const { return total_bytes_; }

  // Reads the segments and notes each record that opens under its key. Damaged records get no
  // digest, and neither do bytes that only look like a record and may reach over genuine ones.
  // Where a segment cannot be read, or so much in it looks like records that genuine ones might be
  // overlooked, the segment is left to the rows (unsettled()). Errors: those of order and of the
  // database.
  Result<> walk(const SurveyOrder& order) NACRE_EXCLUDES(mutex_);
  // The segments of which the walk cannot tell that it found every record.
  const std::set<metadata::SegmentNumber>& unsettled() const { return unsettled_; }
  // Whether some thread may still put rows that name records of that segment which no row names
  // yet.
  bool is_in_use(metadata::SegmentNumber number) const;
  // Notes those records of a segment that rows name. A record that no row names needs no digest.
  // Called while the segment is not in use. Returns the places that cannot be read, after some
  // tries, in the order in which they were given. Errors: as of walk().
  Result<std::vector<metadata::RecordLocation>> survey_named(
      std::span<const metadata::RecordLocation> places, const SurveyOrder& order)
      NACRE_EXCLUDES(mutex_);

  // Puts a record's digest into the open group. For a record that is about to be appended, and for
  // one that opened under its key. Errors: tampered if the record has another digest already; those
  // of the database.
  Result<> note(const engine::RecordHeader& header, ByteView record) NACRE_EXCLUDES(mutex_);

  // Called after the survey, while no thread can append, and when all digests are durable. From now
  // on records of epochs below this one count only with their digest.
  Result<> complete(std::uint32_t epoch);

 private:
  class Walk;
  Result<> walk_one(metadata::SegmentNumber number, const SurveyOrder& order);
  Result<bool> survey_place(metadata::BackingFile& file, const metadata::RecordLocation& place,
                            RecordKeys::Opener& opener, Bytes& memory, const SurveyOrder& order);
  Result<> commit_rows(const SurveyOrder& order) NACRE_EXCLUDES(mutex_);

  SegmentTable& table_;
  metadata::Database& database_;
  RecordKeys& keys_;
  std::atomic<bool> is_active_{false};
  std::atomic<std::uint64_t> total_bytes_{0};
  std::vector<metadata::SegmentNumber> segments_;  // those to be walked
  std::set<metadata::SegmentNumber> unsettled_;

  Mutex mutex_;  // held from the look-up of a digest until it is put
  std::uint64_t new_row_count_ NACRE_GUARDED_BY(mutex_) = 0;  // since the last commit here
};

// Removes these rows, once the keyring has no older epoch any more, or if none came. Returns how
// many there were. commit makes their removal durable.
Result<std::uint64_t> forget_genuine_records(metadata::Database& database,
                                             const std::function<Result<>()>& commit);

}  // namespace nacre::fs
