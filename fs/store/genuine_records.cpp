// SPDX-License-Identifier: Apache-2.0
#include "fs/store/genuine_records.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fs/store/segment_walk.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

using metadata::Table;

namespace {

constexpr std::size_t rows_at_once = 4096;

}  // namespace

class GenuineRecords::Walk final : public SegmentVisitor {
 public:
  Walk(GenuineRecords& records, const Segment& segment, const std::function<Result<>()>& go_on)
      : records_(records), segment_(segment), go_on_(go_on) {}

  Result<> record(std::uint64_t, const engine::RecordHeader& header, ByteView bytes) override {
    records_.rows_.push_back({metadata::genuine_key_of(header.salt, header.counter),
                              metadata::encode_genuine(engine::sha256(bytes))});
    if (records_.rows_.size() < rows_at_once) return {};
    NACRE_TRY(go_on_());
    return records_.flush();
  }
  Result<> damage(std::uint64_t, std::uint64_t, const Error&) override { return {}; }
  // An attacker without a key can change dead bytes, so that they hide what follows them, or have
  // the name of another record.
  Result<> judge(const engine::RecordHeader& header, ByteView record) override {
    auto judged = records_.keys_.authenticate(header, record, opener_);
    const bool is_verdict = judged || judged.error().code == ErrorCode::tampered ||
                            judged.error().code == ErrorCode::corrupt;
    if (!is_verdict && !failure_) failure_ = judged.error();
    return judged;
  }
  const std::optional<Error>& failure() const { return failure_; }
  Result<> gave_up(std::uint64_t offset) override {
    return fail(
        ErrorCode::corrupt,
        fmt::format("{} offset {}: so much that looks like records follows that genuine ones "
                    "might be overlooked, so no rotation of keys begins; copy the files that "
                    "lie there and delete them, and try again",
                    segment_path(segment_.number), offset));
  }
  void passed(std::uint64_t) override {}

 private:
  GenuineRecords& records_;
  const Segment& segment_;
  RecordKeys::Opener opener_;
  std::optional<Error> failure_;  // not being able to judge is no verdict
  const std::function<Result<>()>& go_on_;
};

Result<> GenuineRecords::survey(const std::function<Result<>()>& go_on) {
  for (const SharedSegment& segment : table_.all()) {
    NACRE_TRY(go_on());
    std::uint64_t& walked = walked_[segment->number];
    if (walked == 0) walked = metadata::segment_header_size_bytes;
    const std::uint64_t size = segment->size;
    if (size <= walked) continue;
    const auto file = table_.file(*segment);
    // If the segment was removed in the meantime, or is missing, no record of it can be read.
    if (!file &&
        (file.error().code == ErrorCode::not_found || file.error().code == ErrorCode::missing)) {
      continue;
    }
    if (!file) return tl::unexpected(file.error());
    Walk walk(*this, *segment, go_on);
    NACRE_TRY(
        walk_segment(**file, {.file_size = size, .committed_size = size, .begin = walked}, walk));
    if (walk.failure()) return tl::unexpected(*walk.failure());
    walked = size;
  }
  return flush();
}

Result<> GenuineRecords::flush() {
  if (rows_.empty()) return {};
  return database_.put_now(Table::system, std::exchange(rows_, {}));
}

Result<> GenuineRecords::complete(std::uint32_t epoch) {
  return database_.put_now(
      Table::system, {{std::string(metadata::system_key_genuine), metadata::encode_u64(epoch)}});
}

Result<> forget_genuine_records(metadata::Database& database,
                                const std::function<Result<>()>& commit) {
  // The row that demands digests goes first, and its removal is made durable first.
  NACRE_ASSIGN(const auto since, database.get(Table::system, metadata::system_key_genuine));
  if (since) {
    database.erase(Table::system, metadata::system_key_genuine);
    NACRE_TRY(commit());
  }
  const std::string prefix(metadata::system_key_genuine_prefix);
  while (true) {
    std::vector<std::string> keys;
    NACRE_TRY(database.scan(Table::system, prefix, metadata::prefix_end(prefix),
                            [&](std::string_view key, std::string_view) {
                              keys.emplace_back(key);
                              return keys.size() < rows_at_once;
                            }));
    if (keys.empty()) return {};
    for (const std::string& key : keys)
      database.erase(Table::system, key);
    NACRE_TRY(commit());
  }
}

}  // namespace nacre::fs
