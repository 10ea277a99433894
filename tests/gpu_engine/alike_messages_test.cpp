// SPDX-License-Identifier: Apache-2.0
// Payloads of thousands of short messages, which go to devices unsorted: which payloads do, how
// they are cut into batches, and what the engine counts. No device is needed for that.
#include <algorithm>
#include <latch>
#include <numeric>

#include "gpu_engine/cuda/batch.h"
#include "gpu_engine/cuda/tuning.h"
#include "gpu_engine/plan/planner.h"
#include "tests/gpu_engine/fake_device.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

class AlikeMessages : public testing::Test {
 protected:
  static constexpr std::size_t count = 4096;
  static constexpr std::uint64_t size = 256;

  AlikeMessages() : memory_(allocate_host_arena((count + 1) * size * 2).value()) {
    payload_.input = memory_.data();
    payload_.output = memory_.data() + memory_.size() / 2;
    payload_.input_size = payload_.output_size = memory_.size() / 2;
    counter_key_ = payload_.add_key(BlockCipher::aes_128, CipherMode::ctr, Bytes(16, 1));
    chained_key_ = payload_.add_key(BlockCipher::aes_128, CipherMode::cbc, Bytes(16, 1));
    hmac_key_ = payload_.add_key({.suite = CipherSuite::aes_256_ctr}, Bytes(64, 2));
    for (std::size_t i = 0; i < count; ++i)
      payload_.messages.push_back({.operation = Operation::encrypt,
                                   .key_index = counter_key_,
                                   .input_offset = i * size,
                                   .input_size = size,
                                   .output_offset = i * size,
                                   .output_capacity = size});
  }
  bool are_alike() const { return find_alike(payload_).has_value(); }
  // Changes enough messages for every sample to contain one of them.
  void set_half(const auto& change) {
    for (std::size_t i = count / 2; i < count; ++i)
      change(payload_.messages[i]);
  }

  Arena memory_;
  Payload payload_;
  std::uint32_t counter_key_, chained_key_, hmac_key_;
};

TEST_F(AlikeMessages, are_many_short_ones_of_one_kind) {
  const auto alike = find_alike(payload_);
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike->kind.operation, Operation::encrypt);
  EXPECT_TRUE(alike->has_one_size);
  EXPECT_EQ(alike->size_bytes, size);
  set_half([](Message& message) { message.input_size = 16; });
  const auto uneven = find_alike(payload_);
  ASSERT_TRUE(uneven);
  EXPECT_FALSE(uneven->has_one_size);
  EXPECT_EQ(uneven->size_longest, size);
}

TEST_F(AlikeMessages, are_not_few) {
  payload_.messages.resize(alike_count_min);
  EXPECT_TRUE(are_alike());
  payload_.messages.pop_back();
  EXPECT_FALSE(are_alike());
}

TEST_F(AlikeMessages, are_not_long) {
  payload_.input_size = payload_.output_size = std::uint64_t{1} << 40;
  set_half(
      [](Message& message) { message.input_size = message.output_capacity = alike_weight_max; });
  EXPECT_FALSE(are_alike());
}

TEST_F(AlikeMessages, are_not_of_two_kinds) {
  set_half([](Message& message) { message.operation = Operation::checksum; });
  EXPECT_FALSE(are_alike());
}

TEST_F(AlikeMessages, are_not_the_cpus) {
  set_half([](Message& message) { message.input_offset = std::uint64_t{1} << 50; });
  EXPECT_FALSE(are_alike());
}

// Messages that take a thread each are sorted within batches, so they do not go unsorted.
TEST_F(AlikeMessages, are_not_a_threads_each) {
  for (const std::uint32_t key : {chained_key_, hmac_key_}) {
    for (Message& message : payload_.messages) {
      message.key_index = key;
      message.output_capacity = size + 64;
    }
    EXPECT_FALSE(are_alike());
  }
  for (Message& message : payload_.messages)
    message.operation = Operation::rsa_generate;
  EXPECT_FALSE(are_alike());
}

TEST_F(AlikeMessages, lie_in_one_stretch_each) {
  for (const std::size_t message_count : {1024, 1025, 4096, 65536, 100001}) {
    for (const std::size_t slot_count : {0, 1, 8, 64}) {
      std::uint32_t next = 0;
      for (const cuda::Stretch& stretch :
           cuda::cut_into_stretches(message_count, size, slot_count)) {
        EXPECT_EQ(stretch.first, next);
        EXPECT_GT(stretch.count, 0u);
        EXPECT_LE(stretch.count, cuda::batch_message_count_max);
        next += stretch.count;
      }
      EXPECT_EQ(next, message_count);
    }
  }
}

// Messages that the sample did not see are in batches of their own, or are left to the cpu.
TEST_F(AlikeMessages, are_sorted_where_they_run) {
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 10 == 3) payload_.messages[i].operation = Operation::checksum;
    if (i % 10 == 4) payload_.messages[i].input_offset = std::uint64_t{1} << 50;
    if (i % 10 == 5) {
      payload_.messages[i].key_index = chained_key_;
      payload_.messages[i].input_size = 16 * (i % 7);
    }
  }
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  Sorted sorted = sort_by_kind(payload_, all);
  std::vector<std::uint32_t> found = sorted.rest;
  const std::vector<cuda::Batch> batches = cuda::fill_batches(payload_, std::move(sorted.groups));
  EXPECT_EQ(batches.size(), 3u);
  for (const cuda::Batch& batch : batches) {
    found.insert(found.end(), batch.indexes.begin(), batch.indexes.end());
    if (batch.kind.mode != CryptMode::cbc) continue;
    EXPECT_TRUE(std::ranges::is_sorted(batch.indexes, std::greater(), [&](std::uint32_t i) {
      return payload_.messages[i].input_size;
    }));
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, all);
}

TEST_F(AlikeMessages, make_no_batch_larger_than_a_slot) {
  payload_.input_size = payload_.output_size = std::uint64_t{1} << 40;
  for (Message& message : payload_.messages)
    message.input_size = message.output_capacity = 100000;
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  const auto batches = cuda::fill_batches(payload_, sort_by_kind(payload_, all).groups);
  EXPECT_GT(batches.size(), 1u);
  std::size_t found = 0;
  for (const cuda::Batch& batch : batches) {
    EXPECT_LE(batch.indexes.size() * 100000, cuda::batch_fill_bytes_max);
    found += batch.indexes.size();
  }
  EXPECT_EQ(found, count);
}

TEST_F(AlikeMessages, are_counted_by_who_runs_them) {
  const auto device = std::make_shared<DeviceState>();
  const auto engine = make_engine(
      Planner::create({.choice = EngineChoice::cuda, .thread_count = 2}, [&](const CudaOptions&,
                                                                             Backend& cpu) {
        return Result<std::unique_ptr<DeviceBackend>>(
            std::make_unique<FakeDevice>("cuda, stand-in", device, cpu, 2));
      }).value());
  // A bad message between two that the sample looks at.
  payload_.messages[1].key_index = 99;
  for (const bool by_submit : {false, true}) {
    const EngineStats before = engine->stats();
    payload_.results.clear();
    if (by_submit) {
      std::latch ended(1);
      engine->submit(payload_, [&] { ended.count_down(); });
      ended.wait();
    } else {
      engine->run(payload_);
    }
    const EngineStats after = engine->stats();
    EXPECT_EQ(after.payload_count - before.payload_count, 1u);
    EXPECT_EQ(after.message_count - before.message_count, count);
    EXPECT_EQ(after.failed_message_count - before.failed_message_count, 1u);
    EXPECT_EQ(after.input_bytes - before.input_bytes, count * size);
    EXPECT_EQ(after.output_bytes - before.output_bytes, (count - 1) * size);
    ASSERT_EQ(payload_.results.size(), count);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_EQ(payload_.results[i].ok, i != 1);
  }
  EXPECT_EQ(device->unsorted_count, 2u);
  // A payload that must keep the caller's order goes to the cpu.
  payload_.order = MessageOrder::as_given;
  engine->run(payload_);
  EXPECT_EQ(device->unsorted_count, 2u);
}

}  // namespace
}  // namespace nacre::engine
