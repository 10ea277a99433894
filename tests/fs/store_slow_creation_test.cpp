// SPDX-License-Identifier: Apache-2.0
// A disk that does not answer while a segment is made: appends for which the segment before has
// room go on.
#include <thread>

#include <gtest/gtest.h>

#include "tests/fs/disk_gate.h"
#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

constexpr std::uint32_t chunk_size = 16u << 10;
constexpr std::uint64_t segment_size = 1u << 20;

class SlowCreation : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(directory_));
    engine_ = engine::Engine::create({.thread_count = 2}).value();
    database_ = metadata::Database::open(directory_, test_keys(), {}).value();
    store_ = fs::SegmentStore::open(directory_, *database_, test_keys(), *engine_,
                                    {.segment_size_bytes = segment_size,
                                     .chunk_size_bytes = chunk_size,
                                     .codec = engine::Codec::none,
                                     .session_size_bytes_max = 4u << 20})
                 .value();
    directory_->watch(
        [this](std::uint32_t operation, std::string_view path) { gate_.pass(operation, path); });
  }
  void TearDown() override { gate_.set_open(true); }

  // Appends this many chunks. Returns the segments in which they lie, or none if they could not be
  // appended or read back.
  std::set<fs::SegmentNumber> append(std::size_t chunk_count) {
    Bytes plain(chunk_count * chunk_size);
    for (std::size_t i = 0; i < plain.size(); ++i)
      plain[i] = static_cast<Byte>(i * 7 + i / chunk_size);
    std::vector<fs::SealRequest> requests(chunk_count);
    for (std::size_t i = 0; i < chunk_count; ++i) {
      requests[i] = {.name = {.inode = fs::InodeNumber{7}, .chunk = fs::ChunkIndex{i}},
                     .plain = ByteView(plain).subspan(i * chunk_size, chunk_size)};
    }
    const auto sealed = store_->append(requests);
    NACRE_EXPECT_OK(sealed);
    std::set<fs::SegmentNumber> segments;
    for (std::size_t i = 0; sealed && i < chunk_count; ++i) {
      Bytes back(chunk_size);
      fs::ReadRequest read = {
          .location = sealed->records[i].location, .name = requests[i].name, .out = back};
      read.name.version = sealed->records[i].version;
      store_->read(std::span(&read, 1));
      NACRE_EXPECT_OK(read.result);
      EXPECT_TRUE(std::ranges::equal(back, requests[i].plain));
      segments.insert(sealed->records[i].location.segment);
    }
    return segments;
  }

  DiskGate gate_{change_create, "segments/"};
  std::shared_ptr<MemoryBacking> directory_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<metadata::Database> database_;
  std::unique_ptr<fs::SegmentStore> store_;
};

TEST_F(SlowCreation, keeps_no_writer_waiting_for_whom_there_is_room) {
  const auto first = append(40);  // of 63 that fit
  ASSERT_EQ(first.size(), 1u);
  gate_.set_open(false);
  std::set<fs::SegmentNumber> of_large;
  std::thread large([&] { of_large = append(40); });
  gate_.wait_for_one();
  EXPECT_EQ(append(4), first) << "there is room, and nobody waits";
  EXPECT_EQ(append(1), first);
  std::set<fs::SegmentNumber> of_second;
  std::thread second([&] { of_second = append(30); });  // has no room, and must wait too
  gate_.set_open(true);
  large.join();
  second.join();
  EXPECT_EQ(of_large.size(), 1u);
  EXPECT_NE(of_large, first);
  EXPECT_FALSE(of_second.contains(*first.begin()));
  EXPECT_NE(append(1), first) << "the old segment is closed once there is a new one";
}

// A session has no versions for seven times 40 chunks, so the seventh append begins a new session.
// The segment for which the sixth append waited belongs to the old one.
TEST_F(SlowCreation, of_a_session_that_ended_meanwhile_takes_no_record) {
  std::set<fs::SegmentNumber> last;
  for (int i = 0; i < 5; ++i)
    last = append(40);
  ASSERT_EQ(last.size(), 1u);
  const fs::SegmentNumber unused{last.begin()->value + 1};
  gate_.set_open(false);
  std::set<fs::SegmentNumber> of_sixth;
  std::thread sixth([&] { of_sixth = append(40); });
  gate_.wait_for_one();
  std::set<fs::SegmentNumber> of_seventh;
  const auto version = [&] { return store_->next_version().value_or(fs::RecordVersion{}).value; };
  const std::uint64_t before = version();
  std::thread seventh([&] { of_seventh = append(40); });
  while (version() < before + (1u << 20))  // another session
    std::this_thread::yield();
  gate_.set_open(true);
  sixth.join();
  seventh.join();
  EXPECT_EQ(of_sixth.size(), 1u);
  EXPECT_EQ(of_seventh.size(), 1u);
  EXPECT_FALSE(of_sixth.contains(unused) || of_seventh.contains(unused));
}

// The first append gets the error, and the next one tries again.
TEST_F(SlowCreation, that_fails_is_tried_again) {
  const auto first = append(40);
  directory_->inject(
      {.operations = change_create, .path_part = "segments", .code = ErrorCode::no_space});
  std::vector<fs::SealRequest> requests;
  const Bytes plain(chunk_size, 'x');
  for (std::uint64_t i = 0; i < 40; ++i) {
    requests.push_back(
        {.name = {.inode = fs::InodeNumber{8}, .chunk = fs::ChunkIndex{i}}, .plain = plain});
  }
  const auto refused = store_->append(requests);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::no_space);
  EXPECT_EQ(append(4), first);
  directory_->clear_failures();
  EXPECT_NE(append(40), first);
}

}  // namespace
}  // namespace nacre::tests
