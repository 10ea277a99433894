// SPDX-License-Identifier: Apache-2.0
// The walk that verifies checksums on the engine, compared with the plain walk: both find the same
// records and the same damage.
#include "fs/check/segment_scrub.h"

#include <cstring>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gpu_engine/checksum/crc32.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/memory_backing.h"

namespace nacre::tests {
namespace {

// Bytes that look like a record to a reader without keys.
Bytes make_record(std::size_t size, std::mt19937& random) {
  Bytes bytes(size);
  for (std::size_t i = engine::record_header_size_bytes; i < size; i += 61)
    bytes[i] = static_cast<Byte>(random());
  engine::RecordHeader header{};
  header.magic = engine::record_magic;
  header.version = engine::record_version;
  header.stored_size = static_cast<std::uint32_t>(size);
  header.counter = static_cast<std::uint32_t>(random());
  std::memcpy(bytes.data(), &header, sizeof header);
  const ByteView all(bytes);
  header.crc32 = engine::crc32(engine::crc32(0, all.first(engine::record_aad_header_size_bytes)),
                               all.subspan(engine::record_header_size_bytes));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

struct Seen {
  std::uint64_t record_count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  std::vector<std::string> damage;
};

class Scrubbed final : public fs::SegmentScrubVisitor {
 public:
  explicit Scrubbed(std::uint64_t begin) { seen.end = begin; }
  Result<> verified(std::uint64_t end, std::uint64_t size, std::uint64_t record_count) override {
    EXPECT_EQ(end, seen.end + size) << "a gap, or twice";
    seen.end = end;
    seen.bytes += size;
    seen.record_count += record_count;
    if (--calls_left == 0) return fail(ErrorCode::cancelled, "enough");
    return {};
  }
  void damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    seen.damage.push_back(fmt::format("{}+{}: {}", offset, size, to_string(error.code)));
  }
  Seen seen;
  std::uint64_t calls_left = UINT64_MAX;
};

class Walked final : public fs::SegmentVisitor {
 public:
  Result<> record(std::uint64_t, const engine::RecordHeader&, ByteView) override {
    ++seen.record_count;
    return {};
  }
  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    seen.damage.push_back(fmt::format("{}+{}: {}", offset, size, to_string(error.code)));
    return {};
  }
  void passed(std::uint64_t size) override { seen.bytes += size; }
  Seen seen;
};

class SegmentScrub : public ::testing::Test {
 protected:
  void SetUp() override {
    auto engine = engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 2});
    NACRE_ASSERT_OK(engine);
    engine_ = std::move(*engine);
    auto scrub = fs::SegmentScrub::create(*engine_);
    NACRE_ASSERT_OK(scrub);
    scrub_ = std::move(*scrub);
  }
  // Fills the segment with records of all sizes, and notes where each begins.
  void fill(std::size_t size, std::size_t record_size_max, std::mt19937& random) {
    content_.assign(metadata::segment_header_size_bytes, 0);
    starts_.clear();
    while (content_.size() < size) {
      starts_.push_back(content_.size());
      const auto record =
          make_record(engine::record_size_bytes_min + random() % (record_size_max + 1), random);
      content_.insert(content_.end(), record.begin(), record.end());
    }
  }
  std::unique_ptr<metadata::BackingFile> file() {
    backing_->store("segments/1", content_);
    auto opened = backing_->open("segments/1", metadata::OpenMode::read);
    NACRE_EXPECT_OK(opened);
    return std::move(*opened);
  }
  void expect_same(std::optional<std::uint64_t> committed_size, const std::string& what) {
    const auto segment = file();
    const fs::SegmentBounds bounds{.file_size = content_.size(), .committed_size = committed_size};
    Scrubbed scrubbed(bounds.begin);
    Walked walked;
    const auto end = scrub_->run(*segment, bounds, scrubbed);
    const auto plain_end = fs::walk_segment(*segment, bounds, walked);
    NACRE_ASSERT_OK(end);
    NACRE_ASSERT_OK(plain_end);
    EXPECT_EQ(*end, *plain_end) << what;
    EXPECT_EQ(scrubbed.seen.record_count, walked.seen.record_count) << what;
    EXPECT_EQ(scrubbed.seen.damage, walked.seen.damage) << what;
    EXPECT_EQ(scrubbed.seen.end, *end) << what;
  }

  std::shared_ptr<MemoryBacking> backing_ = MemoryBacking::create();
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<fs::SegmentScrub> scrub_;
  Bytes content_;
  std::vector<std::size_t> starts_;
};

TEST_F(SegmentScrub, finds_what_the_plain_walk_finds) {
  constexpr std::size_t size = 3 * fs::SegmentScrub::stretch_size_bytes;
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    fill(size + random() % size, seed % 2 == 0 ? 1000 : 900'000, random);
    expect_same(content_.size(), "sound");
    const auto sound = content_;
    const std::size_t count = 1 + random() % 5;
    for (std::size_t i = 0; i < count; ++i) {
      // Half of the flips hit headers.
      const std::size_t start = starts_[random() % starts_.size()];
      const std::size_t at = random() % 2 == 0 ? start + random() % engine::record_header_size_bytes
                                               : start + random() % (content_.size() - start);
      content_[at] ^= static_cast<Byte>(1u << random() % 8);
    }
    expect_same(content_.size(), "flipped");
    expect_same(std::nullopt, "flipped, end unknown");
    content_ = sound;
    const std::size_t from = starts_[starts_.size() / 2] + 5;
    std::fill_n(content_.begin() + static_cast<std::ptrdiff_t>(from),
                std::min<std::size_t>(2u << 20, content_.size() - from), Byte{0});
    expect_same(content_.size(), "zeroed");
    content_ = sound;
    content_.resize(starts_.back() + 7);
    expect_same(content_.size(), "cut");
    expect_same(std::nullopt, "cut, end unknown");
  }
}

TEST_F(SegmentScrub, goes_on_from_any_record_to_the_same_end) {
  std::mt19937 random(7);
  fill(3 * fs::SegmentScrub::stretch_size_bytes, 300'000, random);
  const auto segment = file();
  for (const std::size_t i :
       {std::size_t{0}, std::size_t{1}, starts_.size() / 2, starts_.size() - 1}) {
    fs::SegmentBounds bounds{.file_size = content_.size(), .committed_size = content_.size()};
    bounds.begin = starts_[i];
    Scrubbed scrubbed(bounds.begin);
    NACRE_EXPECT_OK(scrub_->run(*segment, bounds, scrubbed));
    EXPECT_EQ(scrubbed.seen.record_count, starts_.size() - i);
    EXPECT_TRUE(scrubbed.seen.damage.empty());
  }
}

TEST_F(SegmentScrub, ends_where_its_visitor_says_so_and_can_be_used_again) {
  std::mt19937 random(8);
  fill(4 * fs::SegmentScrub::stretch_size_bytes, 300'000, random);
  const auto segment = file();
  const fs::SegmentBounds bounds{.file_size = content_.size(), .committed_size = content_.size()};
  Scrubbed first(bounds.begin);
  first.calls_left = 1;
  EXPECT_EQ(error_of(scrub_->run(*segment, bounds, first)), ErrorCode::cancelled);
  fs::SegmentBounds rest = bounds;
  rest.begin = first.seen.end;
  Scrubbed second(rest.begin);
  NACRE_EXPECT_OK(scrub_->run(*segment, rest, second));
  EXPECT_EQ(first.seen.record_count + second.seen.record_count, starts_.size());
}

TEST_F(SegmentScrub, tells_what_cannot_be_read_from_rot) {
  std::mt19937 random(9);
  fill(1u << 20, 10'000, random);
  const auto segment = file();
  backing_->inject(
      {.operations = operation_read, .path_part = "segments/1", .code = ErrorCode::io});
  const fs::SegmentBounds bounds{.file_size = content_.size(), .committed_size = content_.size()};
  Scrubbed scrubbed(bounds.begin);
  NACRE_EXPECT_OK(scrub_->run(*segment, bounds, scrubbed));
  ASSERT_EQ(scrubbed.seen.damage.size(), 1u);
  EXPECT_TRUE(scrubbed.seen.damage.front().ends_with(to_string(ErrorCode::io)))
      << scrubbed.seen.damage.front();
  EXPECT_EQ(scrubbed.seen.end, content_.size());
}

}  // namespace
}  // namespace nacre::tests
