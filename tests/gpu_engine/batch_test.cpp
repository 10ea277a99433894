// SPDX-License-Identifier: Apache-2.0
// How payloads are cut into batches. No device is needed for that.
#include "gpu_engine/cuda/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "gpu_engine/cuda/tuning.h"

namespace nacre::engine {
namespace {

// Numbers only: what is sorted and cut is never read.
class Batches : public testing::Test {
 protected:
  Batches() {
    payload_.input_size = payload_.output_size = std::uint64_t{1} << 40;
    const auto add = [&](CipherMode mode) {
      return payload_.add_key(
          {.kind = KeyKind::block_cipher, .cipher = BlockCipher::aes_128, .mode = mode},
          Bytes(16, 1));
    };
    counter_key_ = add(CipherMode::ctr);
    chained_key_ = add(CipherMode::cbc);
    suite_key_ = payload_.add_key({.suite = CipherSuite::aes_256_ctr}, Bytes(64, 2));
  }

  Message message(std::uint32_t key, std::uint64_t size, Operation operation) {
    return {.operation = operation,
            .key_index = key,
            .input_size = size,
            .output_capacity = size + 200};
  }
  std::vector<cuda::Batch> cut() {
    std::vector<std::uint32_t> all(payload_.messages.size());
    std::iota(all.begin(), all.end(), 0);
    const Sorted sorted = sort_by_kind(payload_, all);
    EXPECT_TRUE(sorted.rest.empty());
    return cuda::cut_into_batches(payload_, sorted.groups, 8);
  }
  std::vector<std::uint64_t> sizes_of(const cuda::Batch& batch) const {
    std::vector<std::uint64_t> sizes;
    for (const std::uint32_t index : batch.indexes)
      sizes.push_back(payload_.messages[index].input_size);
    return sizes;
  }

  Payload payload_;
  std::uint32_t counter_key_, chained_key_, suite_key_;
};

// In an earlier version, seven orders of the same messages differed by up to 22 % in time.
TEST_F(Batches, are_the_same_for_serial_messages_in_any_order) {
  for (std::uint64_t i = 0; i < 1024; ++i)
    payload_.messages.push_back(
        message(chained_key_, std::uint64_t{256} << i % 8, Operation::encrypt));
  for (std::uint64_t i = 0; i < 1952; ++i)
    payload_.messages.push_back(message(counter_key_, i < 960 ? 8192 : 512, Operation::encrypt));
  std::vector<std::vector<std::uint64_t>> serial_before;
  std::mt19937 random(2008);
  for (int order = 0; order < 5; ++order) {
    const std::vector<cuda::Batch> batches = cut();
    std::vector<std::vector<std::uint64_t>> serial;
    std::vector<std::uint64_t> in_turn;
    for (const cuda::Batch& batch : batches) {
      if (batch.kind.mode != CryptMode::cbc) continue;
      // This batch must come before all others.
      EXPECT_EQ(&batch - batches.data(), static_cast<std::ptrdiff_t>(serial.size()));
      serial.push_back(sizes_of(batch));
      in_turn.insert(in_turn.end(), serial.back().begin(), serial.back().end());
    }
    EXPECT_GE(serial.size(), 2u);
    EXPECT_EQ(in_turn.size(), 1024u);
    EXPECT_TRUE(std::ranges::is_sorted(in_turn, std::greater()));
    EXPECT_TRUE(order == 0 || serial == serial_before);
    serial_before = serial;
    std::ranges::shuffle(payload_.messages, random);
  }
}

TEST_F(Batches, keep_parallel_messages_in_their_order) {
  for (std::uint64_t i = 0; i < 3000; ++i)
    payload_.messages.push_back(message(counter_key_, i % 7 * 1000, Operation::encrypt));
  std::vector<std::uint32_t> in_turn;
  for (const cuda::Batch& batch : cut())
    in_turn.insert(in_turn.end(), batch.indexes.begin(), batch.indexes.end());
  EXPECT_EQ(in_turn.size(), 3000u);
  EXPECT_TRUE(std::ranges::is_sorted(in_turn));
}

// With 4,096 short messages in one batch, seven threads waited for the eighth. In sixteen batches,
// all threads waited for the driver.
TEST_F(Batches, spread_many_short_messages_over_the_slots) {
  payload_.messages.assign(4096, message(counter_key_, 235, Operation::encrypt));
  EXPECT_EQ(cut().size(), 4u);
  payload_.messages.resize(1000);  // a batch must be large enough to be worth its launches
  EXPECT_EQ(cut().size(), 1u);
  payload_.messages.assign(1000, message(counter_key_, 2000, Operation::encrypt));
  EXPECT_EQ(cut().size(), 4u);
  payload_.messages.assign(65536, message(counter_key_, 235, Operation::encrypt));
  EXPECT_EQ(cut().size(), 16u);
  payload_.messages.assign(100000, message(counter_key_, 16, Operation::encrypt));
  for (const cuda::Batch& batch : cut())
    EXPECT_LE(batch.indexes.size(), cuda::batch_message_count_max);
}

// Eight batches of 2 MiB took a quarter longer than four.
TEST_F(Batches, of_bare_ciphers_are_worth_their_calls) {
  Message encrypted = message(counter_key_, 8192, Operation::encrypt);
  encrypted.output_capacity = encrypted.input_size;
  payload_.messages.assign(2048, encrypted);
  EXPECT_EQ(cut().size(), 4u);
  payload_.messages.resize(1024);
  EXPECT_EQ(cut().size(), 4u) << "which copy and compute beside each other";
  // Codecs need their time for each piece, however few pieces there are.
  payload_.messages.assign(2048, message(0, 8192, Operation::compress));
  for (Message& compressed : payload_.messages)
    compressed.codec = Codec::lz77;
  EXPECT_EQ(cut().size(), 8u);
}

// The first batches are short. With full ones, the first records of 640 MB came down only after
// eight batches of 24 MiB had gone up.
TEST_F(Batches, of_long_payloads_that_are_sealed_begin_short) {
  const std::uint32_t key = payload_.add_key({.suite = CipherSuite::aes_256_gcm}, Bytes(32, 2));
  payload_.messages.assign(10000, message(key, 64u << 10, Operation::seal));
  const std::vector<cuda::Batch> batches = cut();
  std::size_t count = 0;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::vector<std::uint64_t> sizes = sizes_of(batches[i]);
    const std::uint64_t room = std::min(
        cuda::batch_fill_bytes_max, cuda::batch_fill_bytes_min << std::min<std::size_t>(i / 8, 8));
    EXPECT_LE(sizes.size() * (64u << 10), room);
    count += sizes.size();
    if (i + 1 == batches.size()) continue;
    EXPECT_GT(sizes.size() * (64u << 10), room * 9 / 10);
  }
  EXPECT_EQ(count, 10000u);
}

// With twice as many batches as run at a time, a payload took twice as long. Then 64 MiB were
// slower than 16 cores, which they need not be.
TEST_F(Batches, of_what_is_a_thread_each_are_one_a_slot) {
  for (const std::uint32_t key : {chained_key_, suite_key_}) {
    payload_.messages.assign(1024, message(key, 64u << 10, Operation::encrypt));
    EXPECT_EQ(cut().size(), 8u);
  }
  payload_.messages.assign(1024, message(suite_key_, 64u << 10, Operation::decrypt));
  EXPECT_EQ(cut().size(), 8u);
  for (const Operation operation : {Operation::encrypt, Operation::decrypt}) {
    payload_.messages.assign(1024, message(counter_key_, 64u << 10, operation));
    EXPECT_GE(cut().size(), 16u);
  }
}

// Under a suite with HMAC one thread hashes each message, so messages are sorted by size. But only
// within a batch, whose bytes must lie together.
TEST_F(Batches, sort_what_is_hashed_by_a_thread_each_within_neighbours) {
  for (std::uint64_t i = 0; i < 3000; ++i)
    payload_.messages.push_back(message(suite_key_, 1 + i * 7919 % 20000, Operation::encrypt));
  const std::vector<cuda::Batch> batches = cut();
  EXPECT_GE(batches.size(), 3u);
  std::uint32_t first = 0;
  for (const cuda::Batch& batch : batches) {
    EXPECT_TRUE(std::ranges::is_sorted(sizes_of(batch), std::greater()));
    std::vector<std::uint32_t> indexes = batch.indexes;
    std::ranges::sort(indexes);
    EXPECT_EQ(indexes.front(), first);
    EXPECT_EQ(indexes.back() - indexes.front() + 1, indexes.size());
    first = indexes.back() + 1;
  }
}

}  // namespace
}  // namespace nacre::engine
