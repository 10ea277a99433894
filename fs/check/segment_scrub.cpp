// SPDX-License-Identifier: Apache-2.0
#include "fs/check/segment_scrub.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace nacre::fs {

namespace {

// Passes the results of the plain walk on, and ends it where the fast path may begin again.
class PlainWalk final : public SegmentVisitor {
 public:
  PlainWalk(std::uint64_t begin, SegmentScrubVisitor& visitor)
      : visitor_(visitor), at_(begin), told_(begin), fast_from_(begin + stretch_size_bytes) {}

  Result<> record(std::uint64_t offset, const engine::RecordHeader& header, ByteView) override {
    if (offset >= fast_from_) {
      has_ended_ = true;
      return fail(ErrorCode::cancelled, "the damaged stretch is over");
    }
    ++record_count_;
    at_ = offset + header.stored_size;
    return at_ - told_ >= step_size_bytes ? tell() : Result<>();
  }
  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    visitor_.damage(offset, size, error);
    at_ = offset + size;
    return at_ - told_ >= step_size_bytes ? tell() : Result<>();
  }
  void passed(std::uint64_t) override {}

  Result<> tell() {
    if (at_ == told_) return {};
    const std::uint64_t size = at_ - told_;
    told_ = at_;
    return visitor_.verified(at_, size, std::exchange(record_count_, 0));
  }
  // Whether this visitor has ended the walk, at a good record.
  bool has_ended() const { return has_ended_; }
  std::uint64_t at() const { return at_; }

 private:
  static constexpr std::uint64_t stretch_size_bytes = SegmentScrub::stretch_size_bytes;
  static constexpr std::uint64_t step_size_bytes = 1u << 20;
  SegmentScrubVisitor& visitor_;
  std::uint64_t at_;
  std::uint64_t told_;
  const std::uint64_t fast_from_;
  std::uint64_t record_count_ = 0;
  bool has_ended_ = false;
};

}  // namespace

Result<std::unique_ptr<SegmentScrub>> SegmentScrub::create(engine::Engine& engine) {
  static_assert(stretch_size_bytes >= 2 * engine::record_size_bytes_max);
  std::unique_ptr<SegmentScrub> scrub(new SegmentScrub(engine));
  for (auto& stretch : scrub->stretches_) {
    NACRE_ASSIGN(stretch.input, engine.allocate(stretch_size_bytes));
    stretch.payload.input = stretch.input.data();
    stretch.payload.input_size = stretch.input.size();
  }
  return scrub;
}

SegmentScrub::~SegmentScrub() {
  for (auto& stretch : stretches_)
    collect(stretch);
}

// The CRC covers the header's first 36 bytes and everything behind the CRC field. Moving these 36
// bytes over that field makes one contiguous message.
void SegmentScrub::load(metadata::BackingFile& file, std::uint64_t begin, std::uint64_t end,
                        Stretch& stretch) {
  constexpr std::size_t crc_size_bytes = sizeof(engine::RecordHeader::crc32);
  stretch.begin = begin;
  stretch.size = 0;
  const std::size_t wanted = std::min<std::uint64_t>(stretch_size_bytes, end - begin);
  const MutableByteView bytes(stretch.input.data(), wanted);
  file.advise(begin, wanted, false);
  const auto got = file.read(begin, bytes);
  file.advise(begin, wanted, false);
  if (!got) return;  // the plain walk reports the error
  std::size_t at = 0;
  while (at < *got) {
    const auto header = engine::check_record_header(bytes.subspan(at, *got - at));
    if (!header) break;
    Byte* record = bytes.data() + at;
    std::memmove(record + crc_size_bytes, record, engine::record_aad_header_size_bytes);
    stretch.expected.push_back(header->crc32);
    stretch.payload.add({.operation = engine::Operation::checksum,
                         .input_offset = at + crc_size_bytes,
                         .input_size = header->stored_size - crc_size_bytes});
    at += header->stored_size;
  }
  stretch.size = at;
}

void SegmentScrub::submit(Stretch& stretch) {
  stretch.ended.emplace(1);
  engine_.submit(stretch.payload, [&stretch] { stretch.ended->count_down(); });
}

std::size_t SegmentScrub::collect(Stretch& stretch) {
  if (!stretch.ended) return 0;
  stretch.ended->wait();
  stretch.ended.reset();
  const auto& results = stretch.payload.results;
  std::size_t good = 0;
  while (good < results.size() && results[good].ok &&
         results[good].crc32 == stretch.expected[good]) {
    ++good;
  }
  return good;
}

Result<std::uint64_t> SegmentScrub::run_fast(metadata::BackingFile& file, std::uint64_t at,
                                             std::uint64_t end, SegmentScrubVisitor& visitor) {
  std::uint64_t next = at;
  std::size_t oldest = 0;
  std::size_t count = 0;  // stretches that the engine has
  bool reads_on = true;
  Result<> told;
  while (true) {
    while (reads_on && next < end && count < stretches_.size()) {
      Stretch& stretch = stretches_[(oldest + count) % stretches_.size()];
      stretch.payload.clear();
      stretch.expected.clear();
      load(file, next, end, stretch);
      reads_on = stretch.size > 0;
      if (!reads_on) break;
      next += stretch.size;
      submit(stretch);
      ++count;
    }
    if (count == 0) break;
    Stretch& stretch = stretches_[oldest];
    const std::size_t good = collect(stretch);
    oldest = (oldest + 1) % stretches_.size();
    --count;
    if (!told || next == at) continue;  // stretches behind damage are only waited for
    const auto& messages = stretch.payload.messages;
    const bool is_good = good == messages.size();
    // A message lies within its record, and a record begins where the one before it ends.
    const std::uint64_t size =
        good == 0 ? 0 : messages[good - 1].input_offset + messages[good - 1].input_size;
    at = stretch.begin + size;
    if (size > 0) told = visitor.verified(at, size, good);
    if (!is_good || !told) {
      reads_on = false;
      next = at;
    }
  }
  NACRE_TRY(told);
  return at;
}

Result<std::uint64_t> SegmentScrub::run(metadata::BackingFile& file, const SegmentBounds& bounds,
                                        SegmentScrubVisitor& visitor) {
  const std::uint64_t end =
      std::min(bounds.file_size, bounds.committed_size.value_or(bounds.file_size));
  std::uint64_t at = bounds.begin;
  while (at < end) {
    NACRE_ASSIGN(at, run_fast(file, at, end, visitor));
    if (at >= end) break;
    SegmentBounds rest = bounds;
    rest.begin = at;
    PlainWalk plain(at, visitor);
    const auto walked = walk_segment(file, rest, plain);
    if (!walked && !plain.has_ended()) return walked;
    NACRE_TRY(plain.tell());
    if (walked) return walked;
    at = plain.at();
  }
  return at;
}

}  // namespace nacre::fs
