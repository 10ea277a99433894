// SPDX-License-Identifier: Apache-2.0
// How many payloads a flush becomes: as few as the engine's liking and a segment's size allow.
#include <gtest/gtest.h>

#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

constexpr std::uint32_t chunk_size = 64u << 10;

// The cpu's engine, which says what payloads it likes and counts those that it gets.
class CountingEngine final : public engine::Engine {
 public:
  explicit CountingEngine(std::uint64_t payload_size_bytes)
      : payload_size_bytes_(payload_size_bytes),
        engine_(engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 2})
                    .value()) {}

  Result<engine::Arena> allocate(std::size_t size_bytes) override {
    return engine_->allocate(size_bytes);
  }
  std::uint64_t payload_size_bytes() const override { return payload_size_bytes_; }
  void run(engine::Payload& payload) override {
    message_counts_.push_back(payload.messages.size());
    engine_->run(payload);
  }
  void submit(engine::Payload& payload, std::function<void()> done) override {
    engine_->submit(payload, std::move(done));
  }
  Result<double> measure_resident(engine::Payload& payload, unsigned repetitions) override {
    return engine_->measure_resident(payload, repetitions);
  }
  Result<engine::DeviceCeilings> measure_ceilings() override { return engine_->measure_ceilings(); }
  engine::EngineStats stats() const override { return engine_->stats(); }
  std::string backend_name() const override { return engine_->backend_name(); }

  const std::vector<std::size_t>& message_counts() const { return message_counts_; }

 private:
  const std::uint64_t payload_size_bytes_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<std::size_t> message_counts_;
};

// The messages of each payload when so many chunks are appended at once.
std::vector<std::size_t> payloads_of(std::size_t chunk_count, std::uint64_t liked_size_bytes,
                                     std::uint64_t segment_size_bytes) {
  CountingEngine engine(liked_size_bytes);
  const auto directory = MemoryBacking::create();
  NACRE_EXPECT_OK(TestStore::format(directory));
  auto database = metadata::Database::open(directory, test_keys(), {}).value();
  auto store = fs::SegmentStore::open(
                   directory, *database, test_keys(), engine,
                   {.segment_size_bytes = segment_size_bytes, .chunk_size_bytes = chunk_size})
                   .value();
  const Bytes plain(chunk_count * chunk_size, 'n');
  std::vector<fs::SealRequest> requests(chunk_count);
  for (std::size_t i = 0; i < chunk_count; ++i) {
    requests[i].name = {.inode = fs::InodeNumber{7}, .chunk = fs::ChunkIndex{i}};
    requests[i].plain = ByteView(plain).subspan(i * chunk_size, chunk_size);
  }
  const auto sealed = store->append(requests);
  NACRE_EXPECT_OK(sealed);
  if (sealed) {
    EXPECT_EQ(sealed->records.size(), chunk_count);
    Bytes back(chunk_size);
    fs::ReadRequest read = {
        .location = sealed->records.back().location, .name = requests.back().name, .out = back};
    read.name.version = sealed->records.back().version;
    store->read(std::span(&read, 1));
    NACRE_EXPECT_OK(read.result);
    EXPECT_TRUE(std::ranges::equal(back, requests.back().plain));
  }
  std::vector<std::size_t> counts = engine.message_counts();
  if (!counts.empty()) counts.pop_back();  // of the read
  return counts;
}

using Counts = std::vector<std::size_t>;

// 2 MiB of whole chunks, as a streaming writer flushes them, once became 31 and one.
TEST(StorePayloads, take_whole_what_streams_in) {
  EXPECT_EQ(payloads_of(32, 2u << 20, 64u << 20), (Counts{32}));
  EXPECT_EQ(payloads_of(64, 2u << 20, 64u << 20), (Counts{32, 32}));
}

TEST(StorePayloads, are_as_long_as_the_engine_likes) {
  EXPECT_EQ(payloads_of(256, 16u << 20, 64u << 20), (Counts{256}));
  EXPECT_EQ(payloads_of(300, 16u << 20, 64u << 20), (Counts{256, 44}));
  EXPECT_EQ(payloads_of(32, 16u << 20, 64u << 20), (Counts{32}));
}

// Of a small disk's segments a payload fills a quarter at most, but never is below 2 MiB.
TEST(StorePayloads, are_short_beside_a_segment) {
  EXPECT_EQ(payloads_of(128, 16u << 20, 16u << 20), (Counts{64, 64}));
  EXPECT_EQ(payloads_of(64, 16u << 20, 4u << 20), (Counts{32, 32}));
}

}  // namespace
}  // namespace nacre::tests
