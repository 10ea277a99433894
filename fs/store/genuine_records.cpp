// SPDX-License-Identifier: Apache-2.0
#include "fs/store/genuine_records.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "fs/store/segment_walk.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

using metadata::RecordLocation;
using metadata::SegmentNumber;
using metadata::Table;

namespace {

constexpr std::size_t rows_at_once = 4096;
// Rows of the survey that wait in memory for a commit.
constexpr std::uint64_t uncommitted_row_count_max = 16384;
// The survey asks whether to go on after this many bytes.
constexpr std::uint64_t step_bytes = 1u << 20;
// A medium may fail to read a place and read it a moment later.
constexpr int read_try_count = 4;
constexpr std::chrono::milliseconds read_pause{100};

// Whether the error says what the bytes are. Any other says that this is unknown.
bool is_verdict(ErrorCode code) {
  return code == ErrorCode::tampered || code == ErrorCode::corrupt;
}

}  // namespace

class GenuineRecords::Walk final : public SegmentVisitor {
 public:
  Walk(GenuineRecords& records, const SurveyOrder& order) : records_(records), order_(order) {}

  Result<> record(std::uint64_t, const engine::RecordHeader& header, ByteView bytes) override {
    if (failure_) return tl::unexpected(*failure_);
    if (passed_bytes_ >= step_bytes) NACRE_TRY(go_on());
    const auto noted = records_.note(header, bytes);
    // If the error is a verdict, an attacker changed the record after judge(), or put a copy of it
    // into a second place. The digest that is there stays.
    if (!noted && !is_verdict(noted.error().code)) return noted;
    return records_.commit_rows(order_);
  }
  Result<> damage(std::uint64_t, std::uint64_t, const Error& error) override {
    if (!is_verdict(error.code)) is_unsettled_ = true;
    return {};
  }
  // An attacker without a key can change dead bytes, so that they hide what follows them, or have
  // the name of another record.
  Result<> judge(const engine::RecordHeader& header, ByteView record) override {
    auto judged = records_.keys_.authenticate(header, record, opener_);
    if (!judged && !is_verdict(judged.error().code) && !failure_) failure_ = judged.error();
    return judged;
  }
  // An attacker can make the rest of the walk take any time. So it ends here, and the rows say
  // which records count.
  Result<> gave_up(std::uint64_t) override {
    is_unsettled_ = true;
    return fail(ErrorCode::cancelled, "the rows say which records count");
  }
  void passed(std::uint64_t size) override { passed_bytes_ += size; }

  Result<> go_on() { return order_.go_on(std::exchange(passed_bytes_, 0)); }
  bool is_unsettled() const { return is_unsettled_; }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  GenuineRecords& records_;
  const SurveyOrder& order_;
  RecordKeys::Opener opener_;
  std::optional<Error> failure_;  // not being able to judge is no verdict
  std::uint64_t passed_bytes_ = 0;
  bool is_unsettled_ = false;
};

void GenuineRecords::begin() {
  segments_.clear();
  unsettled_.clear();
  std::uint64_t total = 0;
  for (const SharedSegment& segment : table_.all()) {
    segments_.push_back(segment->number);
    total += segment->size;
  }
  total_bytes_ = total;
  is_active_ = true;
  keys_.heed_survey(true);
}

void GenuineRecords::end() {
  is_active_ = false;
  keys_.heed_survey(false);
  segments_.clear();
  unsettled_.clear();
}

Result<> GenuineRecords::walk(const SurveyOrder& order) {
  for (const SegmentNumber number : segments_)
    NACRE_TRY(walk_one(number, order));
  return {};
}

Result<> GenuineRecords::walk_one(SegmentNumber number, const SurveyOrder& order) {
  NACRE_TRY(order.go_on(0));
  // If the segment was removed in the meantime, no row names a record of it any more.
  const auto segment = table_.find(number);
  if (!segment) return {};
  const auto file = table_.file(**segment);
  if (!file) {
    unsettled_.insert(number);
    return {};
  }
  const std::uint64_t size = (*segment)->size;
  Walk walk(*this, order);
  const auto walked = walk_segment(**file, {.file_size = size, .committed_size = size}, walk);
  if (walk.failure()) return tl::unexpected(*walk.failure());
  if (walk.is_unsettled()) {
    unsettled_.insert(number);
  } else if (!walked) {
    return tl::unexpected(walked.error());
  }
  return walk.go_on();
}

bool GenuineRecords::is_in_use(SegmentNumber number) const {
  const auto segment = table_.find(number);
  return segment && segment->use_count() > 2;  // the table's own, and this one
}

Result<std::vector<RecordLocation>> GenuineRecords::survey_named(
    std::span<const RecordLocation> places, const SurveyOrder& order) {
  std::vector<RecordLocation> unreadable;
  RecordKeys::Opener opener;
  Bytes memory;
  for (const RecordLocation& place : places) {
    NACRE_TRY(order.go_on(place.stored_size));
    const auto segment = table_.find(place.segment);
    if (!segment) continue;  // it was emptied in the meantime
    const auto file = table_.file(**segment);
    if (!file) {
      unreadable.push_back(place);
      continue;
    }
    NACRE_ASSIGN(const bool is_read, survey_place(**file, place, opener, memory, order));
    if (!is_read) unreadable.push_back(place);
    NACRE_TRY(commit_rows(order));
  }
  return unreadable;
}

// Returns false if the place cannot be read.
Result<bool> GenuineRecords::survey_place(metadata::BackingFile& file, const RecordLocation& place,
                                          RecordKeys::Opener& opener, Bytes& memory,
                                          const SurveyOrder& order) {
  memory.resize(place.stored_size);
  Result<std::size_t> got = 0;
  for (int i = 0; i < read_try_count; ++i) {
    if (i > 0) {
      NACRE_TRY(order.go_on(0));
      std::this_thread::sleep_for(read_pause);
    }
    got = file.read(place.offset, memory);
    if (got) break;
  }
  if (!got) return false;
  const ByteView record = ByteView(memory).first(*got);
  const auto judged = [&]() -> Result<> {
    NACRE_ASSIGN(const auto header, engine::parse_record_header(record));
    if (header.stored_size != record.size()) {
      return fail(ErrorCode::corrupt, "the record is of another size than its row says");
    }
    NACRE_TRY(engine::verify_record_crc(record));
    NACRE_TRY(keys_.authenticate(header, record, opener));
    return note(header, record);
  }();
  if (judged || is_verdict(judged.error().code)) return true;
  return tl::unexpected(judged.error());
}

Result<> GenuineRecords::note(const engine::RecordHeader& header, ByteView record) {
  const std::string key = metadata::genuine_key_of(header.salt, header.counter);
  const auto digest = engine::sha256(record);
  const LockGuard lock(mutex_);
  NACRE_ASSIGN(const auto known, database_.get(Table::system, key));
  if (!known) {
    database_.put(Table::system, key, metadata::encode_genuine(digest));
    ++new_row_count_;
    return {};
  }
  NACRE_ASSIGN(const auto before, metadata::decode_genuine(*known));
  if (before == digest) return {};
  return fail(ErrorCode::tampered, "the record is another than the one that was surveyed");
}

Result<> GenuineRecords::commit_rows(const SurveyOrder& order) {
  {
    const LockGuard lock(mutex_);
    if (new_row_count_ < uncommitted_row_count_max) return {};
    new_row_count_ = 0;
  }
  return order.commit();
}

Result<> GenuineRecords::complete(std::uint32_t epoch) {
  return database_.put_now(
      Table::system, {{std::string(metadata::system_key_genuine), metadata::encode_u64(epoch)}});
}

Result<std::uint64_t> forget_genuine_records(metadata::Database& database,
                                             const std::function<Result<>()>& commit) {
  // The row that demands digests goes first, and its removal is made durable first.
  NACRE_ASSIGN(const auto since, database.get(Table::system, metadata::system_key_genuine));
  if (since) {
    database.erase(Table::system, metadata::system_key_genuine);
    NACRE_TRY(commit());
  }
  const std::string prefix(metadata::system_key_genuine_prefix);
  std::uint64_t count = 0;
  while (true) {
    std::vector<std::string> keys;
    NACRE_TRY(database.scan(Table::system, prefix, metadata::prefix_end(prefix),
                            [&](std::string_view key, std::string_view) {
                              keys.emplace_back(key);
                              return keys.size() < rows_at_once;
                            }));
    if (keys.empty()) return count;
    for (const std::string& key : keys)
      database.erase(Table::system, key);
    count += keys.size();
    NACRE_TRY(commit());
  }
}

}  // namespace nacre::fs
