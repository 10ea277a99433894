// SPDX-License-Identifier: Apache-2.0
// A write session never gives out a version that belongs to the next session, however many are
// asked for.
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

using metadata::record_version_session_shift;
using metadata::Table;

constexpr std::uint64_t versions_in_session = 100;

std::uint64_t session_of(fs::RecordVersion version) {
  return version.value >> record_version_session_shift;
}
std::uint64_t place_of(fs::RecordVersion version) {
  return version.value & ((1ull << record_version_session_shift) - 1);
}

class StoreVersions : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(directory_));
    engine_ = engine::Engine::create({.thread_count = 2}).value();
    database_ = metadata::Database::open(directory_, test_keys(), {}).value();
  }
  void open_store(std::uint64_t session_version_count_max = versions_in_session) {
    store_ = fs::SegmentStore::open(directory_, *database_, test_keys(), *engine_,
                                    {.segment_size_bytes = 1u << 20,
                                     .chunk_size_bytes = 16u << 10,
                                     .session_version_count_max = session_version_count_max})
                 .value();
  }
  void set_next_session(std::uint64_t ordinal) {
    NACRE_ASSERT_OK(database_->put_now(
        Table::system,
        {{std::string(metadata::system_key_next_session), metadata::encode_u64(ordinal)}}));
  }

  std::shared_ptr<MemoryBacking> directory_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<metadata::Database> database_;
  std::unique_ptr<fs::SegmentStore> store_;
};

TEST_F(StoreVersions, of_a_session_end_and_another_session_begins) {
  open_store();
  constexpr unsigned thread_count = 4;
  constexpr unsigned draws = 1000;
  std::mutex mutex;
  std::set<fs::RecordVersion> drawn;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < thread_count; ++i) {
    threads.emplace_back([&] {
      std::uint64_t last = 0;
      for (unsigned draw = 0; draw < draws; ++draw) {
        const auto version = store_->next_version();
        NACRE_ASSERT_OK(version);
        EXPECT_LT(last, version->value) << "a later one is higher";
        last = version->value;
        std::lock_guard lock(mutex);
        EXPECT_TRUE(drawn.insert(*version).second) << version->value << " was given out twice";
        EXPECT_LT(place_of(*version), versions_in_session);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(drawn.size(), thread_count * draws);
  EXPECT_EQ(session_of(*drawn.rbegin()), store_->session_ordinal());
  EXPECT_GE(store_->session_ordinal(), thread_count * draws / versions_in_session);

  // The next mount's are higher than all of them.
  store_.reset();
  open_store();
  const auto next = store_->next_version();
  NACRE_ASSERT_OK(next);
  EXPECT_GT(session_of(*next), session_of(*drawn.rbegin()));
}

// Records get the versions that were drawn for them before, also in a later session.
TEST_F(StoreVersions, that_were_drawn_are_those_of_their_records) {
  open_store(7);
  const Bytes plain(1000, 'x');
  const auto drawn = store_->draw_versions(10);
  NACRE_ASSERT_OK(drawn);
  const auto later = store_->next_version();
  NACRE_ASSERT_OK(later);
  EXPECT_LT(drawn->versions.back(), *later);
  std::vector<fs::SealRequest> requests;
  for (const fs::RecordVersion version : drawn->versions) {
    const fs::RecordName name{
        .inode = fs::InodeNumber{7}, .chunk = fs::ChunkIndex{0}, .version = version};
    requests.push_back({.name = name, .plain = plain});
    // Each begins a session when it is drawn, and the records are sealed in the last one.
    requests.push_back({.name = {.inode = fs::InodeNumber{7}}, .plain = plain});
  }
  const auto sealed = store_->append(requests);
  NACRE_ASSERT_OK(sealed);
  std::set<fs::RecordVersion> versions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const fs::RecordVersion version = sealed->records[i].version;
    EXPECT_TRUE(versions.insert(version).second);
    if (i % 2 == 0) {
      EXPECT_EQ(version, drawn->versions[i / 2]);
    } else {
      EXPECT_LT(*later, version);
    }
    Bytes back(plain.size());
    fs::ReadRequest read = {
        .location = sealed->records[i].location, .name = requests[i].name, .out = back};
    read.name.version = version;
    store_->read(std::span(&read, 1));
    NACRE_EXPECT_OK(read.result);
    EXPECT_TRUE(back == plain);
  }
}

// Records of one batch go on in the next session, and are read back by their versions.
TEST_F(StoreVersions, end_amid_a_batch_of_records) {
  open_store(7);
  const Bytes plain(1000, 'x');
  std::vector<fs::SealRequest> requests;
  for (std::uint64_t i = 0; i < 40; ++i) {
    requests.push_back(
        {.name = {.inode = fs::InodeNumber{7}, .chunk = fs::ChunkIndex{i}}, .plain = plain});
  }
  const auto sealed = store_->append(requests);
  NACRE_ASSERT_OK(sealed);
  std::set<fs::RecordVersion> versions;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const fs::SealedRecord& record = sealed->records[i];
    EXPECT_LT(place_of(record.version), 7u);
    EXPECT_TRUE(versions.insert(record.version).second);
    Bytes back(plain.size());
    fs::ReadRequest read = {.location = record.location, .name = requests[i].name, .out = back};
    read.name.version = record.version;
    store_->read(std::span(&read, 1));
    NACRE_EXPECT_OK(read.result);
    EXPECT_TRUE(back == plain);
  }
}

// Numbers after the last session's versions would wrap around to those of the first one.
TEST_F(StoreVersions, of_the_last_session_end_with_an_error) {
  set_next_session((1ull << (64 - record_version_session_shift)) - 1);
  open_store();
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i < versions_in_session; ++i) {
    const auto version = store_->next_version();
    NACRE_ASSERT_OK(version);
    EXPECT_LT(last, version->value);
    last = version->value;
  }
  for (int i = 0; i < 1000; ++i) {
    const auto refused = store_->next_version();
    ASSERT_FALSE(refused) << "version " << refused->value;
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_NE(refused.error().message.find("16,777,215 write sessions"), std::string::npos);
  }
  const Bytes plain(1000, 'x');
  const fs::SealRequest request{.name = {.inode = fs::InodeNumber{7}, .chunk = fs::ChunkIndex{0}},
                                .plain = plain};
  const auto sealed = store_->append(std::span(&request, 1));
  ASSERT_FALSE(sealed);
  EXPECT_EQ(sealed.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace nacre::tests
