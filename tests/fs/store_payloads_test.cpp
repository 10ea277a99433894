// SPDX-License-Identifier: Apache-2.0
// How many payloads a flush becomes: as few as the engine's preferred size and the size of a
// segment allow.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/fs/store_fixture.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

constexpr std::uint32_t chunk_size = 64u << 10;

// The cpu's engine, which says what payloads it likes and counts those that it gets.
class CountingEngine : public engine::Engine {
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
    count(payload);
    engine_->run(payload);
  }
  void submit(engine::Payload& payload, std::function<void()> done) override {
    count(payload);
    engine_->submit(payload, std::move(done));
  }
  Result<double> measure_resident(engine::Payload& payload, unsigned repetitions) override {
    return engine_->measure_resident(payload, repetitions);
  }
  Result<engine::DeviceCeilings> measure_ceilings() override { return engine_->measure_ceilings(); }
  engine::EngineStats stats() const override { return engine_->stats(); }
  std::string backend_name() const override { return engine_->backend_name(); }

  // Called while no thread uses the engine.
  const std::vector<std::size_t>& message_counts() const { return message_counts_; }
  const std::vector<const Byte*>& inputs() const { return inputs_; }  // of all messages
  const std::vector<const Byte*>& outputs() const { return outputs_; }

 private:
  void count(const engine::Payload& payload) {
    const std::lock_guard lock(mutex_);
    message_counts_.push_back(payload.messages.size());
    for (const engine::Message& message : payload.messages) {
      inputs_.push_back(payload.input + message.input_offset);
      outputs_.push_back(payload.output + message.output_offset);
    }
  }

  const std::uint64_t payload_size_bytes_;
  std::unique_ptr<engine::Engine> engine_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::size_t> message_counts_;
  std::vector<const Byte*> inputs_;
  std::vector<const Byte*> outputs_;
};

// Begins with a payload only when the next one is there, or it is the last.
class LateEngine final : public CountingEngine {
 public:
  explicit LateEngine(std::size_t payload_count)
      : CountingEngine(2u << 20), payload_count_(payload_count) {}

  void submit(engine::Payload& payload, std::function<void()> done) override {
    if (held_ != nullptr) CountingEngine::submit(*held_, std::move(done_));
    held_ = &payload;
    done_ = std::move(done);
    if (++submitted_count_ == payload_count_) CountingEngine::submit(*held_, std::move(done_));
  }
  std::size_t submitted_count() const { return submitted_count_; }

 private:
  const std::size_t payload_count_;
  std::size_t submitted_count_ = 0;
  engine::Payload* held_ = nullptr;
  std::function<void()> done_;
};

// A new store over an engine, and nothing above it.
struct BareStore {
  explicit BareStore(engine::Engine& engine) {
    NACRE_EXPECT_OK(TestStore::format(directory));
    database = metadata::Database::open(directory, test_keys(), {}).value();
    store = fs::SegmentStore::open(directory, *database, test_keys(), engine,
                                   {.chunk_size_bytes = chunk_size})
                .value();
  }
  const std::shared_ptr<MemoryBacking> directory = MemoryBacking::create();
  std::unique_ptr<metadata::Database> database;
  std::unique_ptr<fs::SegmentStore> store;
};

struct Chunks {
  explicit Chunks(std::size_t count, std::uint64_t inode = 7)
      : plain(count * chunk_size), requests(count) {
    for (std::size_t i = 0; i < count; ++i) {
      const MutableByteView piece = MutableByteView(plain).subspan(i * chunk_size, chunk_size);
      std::fill(piece.begin(), piece.end(), static_cast<Byte>(17 * inode + i));
      requests[i].name = {.inode = fs::InodeNumber{inode}, .chunk = fs::ChunkIndex{i}};
      requests[i].plain = piece;
    }
  }
  void expect_stored(fs::SegmentStore& store, const fs::SealedBatch& sealed) const {
    ASSERT_EQ(sealed.records.size(), requests.size());
    Bytes back(chunk_size);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      fs::ReadRequest read = {
          .location = sealed.records[i].location, .name = requests[i].name, .out = back};
      read.name.version = sealed.records[i].version;
      store.read(std::span(&read, 1));
      NACRE_EXPECT_OK(read.result);
      EXPECT_TRUE(std::ranges::equal(back, requests[i].plain)) << i;
    }
  }
  Bytes plain;
  std::vector<fs::SealRequest> requests;
};

// The number of messages in each payload if chunk_count chunks are appended at once.
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

// A payload fills at most a quarter of a segment, also of the small segments on a small disk, but
// is never below 2 MiB.
TEST(StorePayloads, are_short_beside_a_segment) {
  EXPECT_EQ(payloads_of(128, 16u << 20, 16u << 20), (Counts{64, 64}));
  EXPECT_EQ(payloads_of(64, 16u << 20, 4u << 20), (Counts{32, 32}));
}

// Bytes in plain memory are not copied. If one piece of a batch lies elsewhere, all pieces are
// copied.
TEST(StorePayloads, are_sealed_where_their_bytes_lie) {
  CountingEngine engine(2u << 20);
  const BareStore bare(engine);
  fs::SegmentStore* const store = bare.store.get();
  Chunks chunks(40);
  std::vector<fs::PlainBytes> blocks;
  for (fs::SealRequest& request : chunks.requests) {
    blocks.emplace_back(request.plain, &store->plain_memory());
    request.plain = blocks.back();
  }
  const auto sealed = store->append(chunks.requests);
  NACRE_ASSERT_OK(sealed);
  ASSERT_EQ(engine.inputs().size(), chunks.requests.size());
  for (std::size_t i = 0; i < chunks.requests.size(); ++i)
    EXPECT_EQ(engine.inputs()[i], chunks.requests[i].plain.data()) << i;
  chunks.expect_stored(*store, *sealed);

  const std::size_t before = engine.inputs().size();
  const Bytes elsewhere(chunk_size, 'e');
  chunks.requests[3].plain = elsewhere;
  const auto copied = store->append(std::span(chunks.requests).first(8));
  NACRE_ASSERT_OK(copied);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_NE(engine.inputs()[before + i], chunks.requests[i].plain.data()) << i;
  Chunks few(0);
  few.requests.assign(chunks.requests.begin(), chunks.requests.begin() + 8);
  few.expect_stored(*store, *copied);
}

// Records that are opened into clean memory are not copied. If one of a batch is not, all are
// copied.
TEST(StorePayloads, are_opened_where_their_bytes_are_to_lie) {
  CountingEngine engine(2u << 20);
  const BareStore bare(engine);
  fs::SegmentStore* const store = bare.store.get();
  const Chunks chunks(40);
  const auto sealed = store->append(chunks.requests);
  NACRE_ASSERT_OK(sealed);
  std::vector<fs::PlainBytes> blocks;
  std::vector<fs::ReadRequest> reads;
  for (std::size_t i = 0; i < chunks.requests.size(); ++i) {
    blocks.emplace_back(&store->clean_memory());
    blocks.back().resize(chunk_size);
    reads.push_back({.location = sealed->records[i].location,
                     .name = chunks.requests[i].name,
                     .out = {blocks.back().data(), chunk_size}});
    reads.back().name.version = sealed->records[i].version;
  }
  const auto expect_read = [&](std::size_t count, std::size_t in_place_count) {
    const std::size_t before = engine.outputs().size();
    store->read(std::span(reads).first(count));
    ASSERT_EQ(engine.outputs().size(), before + count);
    std::size_t in_place = 0;
    for (std::size_t i = 0; i < count; ++i) {
      NACRE_EXPECT_OK(reads[i].result);
      EXPECT_TRUE(std::ranges::equal(reads[i].out, chunks.requests[i].plain)) << i;
      in_place += engine.outputs()[before + i] == reads[i].out.data() ? 1u : 0u;
      std::ranges::fill(reads[i].out, Byte{0});
    }
    EXPECT_EQ(in_place, in_place_count);
  };
  expect_read(40, 40);
  Bytes elsewhere(chunk_size);
  reads[3].out = elsewhere;
  expect_read(8, 0);
  // A record of which not a byte is to be trusted brings none.
  reads[4].name.chunk = fs::ChunkIndex{77};
  store->read(std::span(reads).subspan(4, 4));
  EXPECT_EQ(reads[4].result.error().code, ErrorCode::tampered);
  EXPECT_TRUE(std::ranges::all_of(reads[4].out, [](Byte byte) { return byte == Byte{0}; }));
  NACRE_EXPECT_OK(reads[5].result);
}

// If a file is written from front to back, in pieces of any size, its bytes go to the engine from
// the place where the writes put them.
TEST(StorePayloads, of_a_written_file_are_its_dirty_chunks) {
  CountingEngine engine(2u << 20);
  const auto directory = MemoryBacking::create();
  NACRE_EXPECT_OK(TestStore::format(directory));
  StoreOptions options;
  options.engine = &engine;
  auto store = TestStore::open(directory, options).value();
  const std::uint32_t size = options.segments.chunk_size_bytes;
  const Bytes piece(size / 4 * 3, 'p');
  for (std::uint64_t at = 0; at < 48 * size; at += piece.size())
    NACRE_ASSERT_OK(store->file(7).write(at, piece));
  fs::PlainMemory& memory = store->cache().store().plain_memory();
  EXPECT_EQ(memory.stats().block_count, 48u);
  const Byte* const block = memory.take();
  const ByteView slab = memory.slab_of({block, 1});
  memory.give_back(const_cast<Byte*>(block));
  NACRE_ASSERT_OK(store->sync(7));
  EXPECT_EQ(engine.inputs().size(), 48u);
  for (const Byte* const input : engine.inputs())
    EXPECT_TRUE(input >= slab.data() && input < slab.data() + slab.size());
  EXPECT_EQ(memory.stats().block_count, 0u);
  NACRE_ASSERT_OK(store->close());
}

// Also what no flusher was needed for.
TEST(StorePayloads, of_a_written_file_leave_no_memory_behind) {
  const auto directory = MemoryBacking::create();
  NACRE_EXPECT_OK(TestStore::format(directory));
  StoreOptions options;
  options.threads = true;
  auto store = TestStore::open(directory, options).value();
  NACRE_ASSERT_OK(store->file(7).write(0, Bytes(2 * options.segments.chunk_size_bytes, 'p')));
  fs::PlainMemory& memory = store->cache().store().plain_memory();
  EXPECT_FALSE(memory.is_empty());
  NACRE_ASSERT_OK(store->sync(7));
  // The memory is freed also while other files sync small writes all the time.
  const auto end = std::chrono::steady_clock::now() + patience;
  for (std::uint64_t at = 0; !memory.is_empty() && std::chrono::steady_clock::now() < end; ++at) {
    NACRE_ASSERT_OK(store->file(8).write(at, Bytes(1, 's')));
    NACRE_ASSERT_OK(store->sync(8));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_TRUE(memory.is_empty());
  NACRE_ASSERT_OK(store->close());
}

// While one payload is written, the next one is sealed. Otherwise this test would not end, since
// its engine waits for the next payload.
TEST(StorePayloads, are_sealed_before_the_last_one_is_written) {
  LateEngine engine(4);
  const BareStore bare(engine);
  fs::SegmentStore* const store = bare.store.get();
  const Chunks chunks(4 * 32 - 5);
  const auto sealed = store->append(chunks.requests);
  NACRE_ASSERT_OK(sealed);
  EXPECT_EQ(engine.submitted_count(), 4u);
  chunks.expect_stored(*store, *sealed);
}

// A caller that finds a segment in use fills another one, up to the allowed number. A single caller
// fills one segment.
TEST(StorePayloads, of_several_callers_go_to_segments_side_by_side) {
  CountingEngine engine(2u << 20);
  const auto directory = MemoryBacking::create();
  NACRE_EXPECT_OK(TestStore::format(directory));
  auto database = metadata::Database::open(directory, test_keys(), {}).value();
  auto store = fs::SegmentStore::open(
                   directory, *database, test_keys(), engine,
                   {.chunk_size_bytes = chunk_size, .fresh_lane_count = fs::fresh_lane_count_max})
                   .value();
  const auto segments_of = [](const std::vector<fs::SealedBatch>& batches) {
    std::set<fs::SegmentNumber> segments;
    for (const fs::SealedBatch& batch : batches) {
      for (const fs::SealedRecord& record : batch.records)
        segments.insert(record.location.segment);
    }
    return segments.size();
  };
  std::vector<fs::SealedBatch> alone;
  for (int i = 0; i < 8; ++i)
    alone.push_back(store->append(Chunks(40).requests).value());
  EXPECT_EQ(segments_of(alone), 1u);

  constexpr std::size_t thread_count = 6;
  constexpr std::size_t round_count = 8;
  std::vector<Chunks> chunks;
  for (std::size_t i = 0; i < thread_count; ++i)
    chunks.emplace_back(40, 100 + i);
  std::vector<std::vector<fs::SealedBatch>> batches(thread_count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t round = 0; round < round_count; ++round) {
        auto sealed = store->append(chunks[i].requests);
        NACRE_EXPECT_OK(sealed);
        if (sealed) batches[i].push_back(std::move(*sealed));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::map<fs::SegmentNumber, std::map<std::uint64_t, std::uint64_t>> places;
  for (std::size_t i = 0; i < thread_count; ++i) {
    ASSERT_EQ(batches[i].size(), round_count);
    EXPECT_LE(segments_of(batches[i]), fs::fresh_lane_count_max);
    for (const fs::SealedBatch& batch : batches[i]) {
      chunks[i].expect_stored(*store, batch);
      for (const fs::SealedRecord& record : batch.records)
        places[record.location.segment][record.location.offset] = record.location.stored_size;
    }
  }
  // No two records overlap.
  for (const auto& [segment, records] : places) {
    std::uint64_t end = 0;
    for (const auto& [offset, size] : records) {
      EXPECT_GE(offset, end) << segment.value;
      end = offset + size;
    }
  }
}

}  // namespace
}  // namespace nacre::tests
