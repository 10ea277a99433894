// SPDX-License-Identifier: Apache-2.0
// The order in which a payload's messages run, and which of them share lanes.
#include "gpu_engine/cpu/schedule.h"

#include <gtest/gtest.h>

#include <numeric>

#include <algorithm>
#include <set>
#include <utility>

#include "gpu_engine/cipher/implementation.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

class Schedules : public testing::Test {
 protected:
  Schedules() : memory_(64u << 20) {
    payload_.input = memory_.data();
    payload_.output = memory_.data();
    payload_.input_size = payload_.output_size = memory_.size();
  }

  Message& add(Operation operation, std::uint64_t size, std::uint32_t key_index = 0) {
    Message& message = payload_.messages.emplace_back();
    message.operation = operation;
    message.input_size = message.output_capacity = size;
    message.key_index = key_index;
    return message;
  }

  std::uint32_t add_key(BlockCipher cipher, CipherMode mode) {
    return payload_.add_key(cipher, mode, Bytes(key_size_bytes(cipher)));
  }

  Schedule make(unsigned worker_count) {
    keys_.clear();
    for (const Payload::Key& key : payload_.key_table) {
      ExpandedKey& expanded = keys_.emplace_back();
      auto made = expand_key(key.use, payload_.keys.view().subspan(key.offset, key.size));
      if (made) expanded.object = std::move(*made);
    }
    std::vector<std::uint32_t> all(payload_.messages.size());
    std::iota(all.begin(), all.end(), 0);
    return make_schedule(payload_, all, keys_, worker_count);
  }

  // Every message is in one task or in its parts, whole and without overlap.
  void expect_complete(const Schedule& schedule) {
    std::vector<int> seen(payload_.messages.size());
    std::vector<int> part_seen(schedule.parts.size());
    for (const Task& task : schedule.tasks) {
      for (std::uint32_t i = task.first; i < task.first + task.count; ++i) {
        if (task.kind == Task::Kind::part) {
          ++part_seen.at(i);
        } else {
          ++seen.at(schedule.order.at(i));
        }
      }
    }
    for (const Split& split : schedule.splits) {
      ++seen.at(split.message_index);
      std::uint64_t offset = 0;
      for (std::uint32_t i = split.first_part; i < split.first_part + split.part_count; ++i) {
        EXPECT_EQ(schedule.parts.at(i).message_index, split.message_index);
        EXPECT_EQ(schedule.parts[i].offset, offset);
        EXPECT_GT(schedule.parts[i].size, 0u);
        offset += schedule.parts[i].size;
      }
      EXPECT_EQ(offset, payload_.messages[split.message_index].input_size);
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
    EXPECT_TRUE(std::ranges::all_of(part_seen, [](int n) { return n == 1; }));
    if (payload_.order == MessageOrder::as_given) {
      EXPECT_TRUE(std::ranges::is_sorted(schedule.order));
      std::uint32_t next = 0;
      for (const Task& task : schedule.tasks)
        EXPECT_EQ(std::exchange(next, task.first + task.count), task.first);
      return;
    }
    EXPECT_TRUE(std::ranges::is_sorted(
        schedule.tasks, [](const Task& a, const Task& b) { return a.cost_ns > b.cost_ns; }));
  }

  Bytes memory_;
  Payload payload_;
  ExpandedKeys keys_;
};

TEST_F(Schedules, nothing_is_no_task) {
  EXPECT_TRUE(make(4).tasks.empty());
  EXPECT_EQ(make(4).worker_count, 1u);
}

TEST_F(Schedules, small_payloads_run_alone_in_the_callers_order) {
  for (std::uint64_t size : {10u, 5000u, 300u, 20000u})
    add(Operation::compress, size);
  const Schedule schedule = make(8);
  EXPECT_EQ(schedule.worker_count, 1u);
  ASSERT_EQ(schedule.tasks.size(), 1u);
  EXPECT_EQ(schedule.order, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST_F(Schedules, the_longest_go_first_and_equals_keep_their_order) {
  for (int i = 0; i < 5; ++i)
    add(Operation::compress, 100000);
  add(Operation::compress, 1u << 20);
  add(Operation::rsa_generate, 2000).rsa_bits = 2048;
  const Schedule schedule = make(2);
  expect_complete(schedule);
  EXPECT_EQ(schedule.order, (std::vector<std::uint32_t>{6, 5, 0, 1, 2, 3, 4}));
  EXPECT_EQ(schedule.worker_count, 2u);
}

TEST_F(Schedules, a_batch_of_rsa_uses_every_worker) {
  for (const Operation operation :
       {Operation::rsa_public, Operation::rsa_private, Operation::rsa_generate}) {
    payload_.messages.clear();
    for (int i = 0; i < 64; ++i)
      add(operation, 256).rsa_bits = 2048;
    const Schedule schedule = make(4);
    expect_complete(schedule);
    EXPECT_EQ(schedule.worker_count, 4u);
    std::uint64_t whole = 0;
    std::uint64_t most = 0;
    for (const Task& task : schedule.tasks) {
      whole += task.cost_ns;
      most = std::max(most, task.cost_ns);
    }
    EXPECT_LE(most, whole / 16) << "a task that the others would wait for";
  }
}

TEST_F(Schedules, small_messages_are_put_together) {
  for (int i = 0; i < 1000; ++i)
    add(Operation::compress, 1000);
  const Schedule schedule = make(4);
  expect_complete(schedule);
  EXPECT_GT(schedule.tasks.size(), 4u);
  EXPECT_LT(schedule.tasks.size(), 100u);
  EXPECT_EQ(schedule.worker_count, 4u);
}

TEST_F(Schedules, long_messages_that_can_be_split_are) {
  const std::uint64_t size = (48u << 20) + 16;
  add(Operation::encrypt, size, add_key(BlockCipher::aes_256, CipherMode::ctr));
  add(Operation::decrypt, size, add_key(BlockCipher::aes_256, CipherMode::cbc));
  add(Operation::encrypt, size, add_key(BlockCipher::des, CipherMode::ecb));
  add(Operation::checksum, size);
  const Schedule schedule = make(4);
  expect_complete(schedule);
  EXPECT_EQ(schedule.splits.size(), 4u);
  for (const Split& split : schedule.splits) {
    EXPECT_GE(split.part_count, 4u);
    EXPECT_LE(split.part_count, 17u);
  }
  // One thread has nothing to split for.
  EXPECT_TRUE(make(1).splits.empty());
}

TEST_F(Schedules, serial_and_malformed_messages_are_never_split) {
  const std::uint64_t size = 48u << 20;
  const std::uint32_t cbc = add_key(BlockCipher::aes_256, CipherMode::cbc);
  const std::uint32_t ctr = add_key(BlockCipher::aes_256, CipherMode::ctr);
  add(Operation::encrypt, size, cbc);
  add(Operation::encrypt, size, add_key(BlockCipher::aes_128, CipherMode::ofb));
  add(Operation::decrypt, size, add_key(BlockCipher::aes_128, CipherMode::ofb));
  add(Operation::decrypt, size - 1, cbc);
  add(Operation::encrypt, size, ctr).output_capacity = size - 1;
  add(Operation::encrypt, size, ctr).input_offset = payload_.input_size - size + 1;
  add(Operation::checksum, size).input_offset = payload_.input_size - size + 1;
  add(Operation::checksum, ~0ull);
  add(Operation::encrypt, ~0ull, ctr);
  add(Operation::encrypt, size, 99);
  const Schedule schedule = make(4);
  expect_complete(schedule);
  EXPECT_TRUE(schedule.splits.empty());
}

TEST_F(Schedules, serial_messages_fill_the_lanes_of_few_threads) {
  if (!ipsec_mb_is_available()) {
    std::puts("skipped: lanes: this processor lacks AES instructions");
    GTEST_SKIP();
  }
  const std::uint32_t cbc = add_key(BlockCipher::aes_256, CipherMode::cbc);
  const std::size_t lanes = serial_lane_count(BlockCipher::aes_256);
  for (std::size_t i = 0; i < 3 * lanes; ++i)
    add(Operation::encrypt, 4096 * (1 + i), cbc);
  const Schedule schedule = make(8);
  expect_complete(schedule);
  ASSERT_EQ(schedule.tasks.size(), 3u);
  for (const Task& task : schedule.tasks) {
    EXPECT_EQ(task.kind, Task::Kind::serial_messages);
    EXPECT_EQ(task.count, lanes);
    // The longest of each comes first.
    EXPECT_GE(payload_.messages[schedule.order[task.first]].input_size, 4096 * (3 * lanes - 2));
  }
}

TEST_F(Schedules, a_payload_may_keep_its_order) {
  const std::uint32_t cbc = add_key(BlockCipher::aes_256, CipherMode::cbc);
  const std::uint32_t ctr = add_key(BlockCipher::aes_256, CipherMode::ctr);
  const std::uint64_t size = 1u << 20;
  add(Operation::compress, 1000);
  add(Operation::encrypt, size, cbc);
  add(Operation::encrypt, 4 * size, cbc);
  add(Operation::encrypt, 32 * size, ctr);
  add(Operation::encrypt, 2 * size, cbc);
  add(Operation::compress, 1000);
  add(Operation::compress, 2000);
  payload_.order = MessageOrder::as_given;
  for (const unsigned workers : {1u, 4u}) {
    const Schedule schedule = make(workers);
    expect_complete(schedule);
    EXPECT_TRUE(schedule.splits.empty());
    EXPECT_EQ(schedule.order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
    if (!ipsec_mb_is_available()) continue;
    std::vector<std::uint32_t> counts;
    for (const Task& task : schedule.tasks)
      counts.push_back(task.count);
    EXPECT_EQ(counts, (std::vector<std::uint32_t>{1, 2, 1, 1, 2}));
  }
  payload_.order = MessageOrder::soonest;
  EXPECT_NE(make(4).order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST_F(Schedules, costs_follow_size_and_kind) {
  const std::uint32_t ctr = add_key(BlockCipher::aes_256, CipherMode::ctr);
  const std::uint32_t cbc = add_key(BlockCipher::aes_256, CipherMode::cbc);
  const std::uint32_t des = add_key(BlockCipher::des, CipherMode::cbc);
  const std::uint32_t triple = add_key(BlockCipher::des_ede3, CipherMode::cbc);
  const auto cost = [&](Operation operation, std::uint64_t size, std::uint32_t key) {
    const Message message = add(operation, size, key);
    return estimate_cost_ns(payload_, message);
  };
  const std::uint64_t size = 1u << 20;
  EXPECT_LT(cost(Operation::encrypt, size, ctr), cost(Operation::encrypt, size, cbc));
  EXPECT_LT(cost(Operation::decrypt, size, cbc), cost(Operation::encrypt, size, cbc));
  EXPECT_LT(cost(Operation::encrypt, size, cbc), cost(Operation::encrypt, size, des));
  EXPECT_LT(cost(Operation::encrypt, size, des), cost(Operation::encrypt, size, triple));
  EXPECT_LT(cost(Operation::encrypt, size / 2, cbc), cost(Operation::encrypt, size, cbc));
  EXPECT_LT(cost(Operation::rsa_public, 384, 0), cost(Operation::rsa_private, 384, 0));
  EXPECT_LT(cost(Operation::rsa_private, 256, 0), cost(Operation::rsa_private, 512, 0));
  EXPECT_LT(cost(Operation::rsa_private, 512, 0), cost(Operation::rsa_generate, 5000, 0));
}

TEST_F(Schedules, any_mixture_is_complete) {
  TestRandom random;
  for (int round = 0; round < 50; ++round) {
    payload_.clear();
    payload_.order = round % 2 == 0 ? MessageOrder::soonest : MessageOrder::as_given;
    std::vector<std::uint32_t> key_indexes;
    for (unsigned cipher = 0; cipher < 5; ++cipher) {
      for (unsigned mode = 0; mode < 4; ++mode)
        key_indexes.push_back(
            add_key(static_cast<BlockCipher>(cipher), static_cast<CipherMode>(mode)));
    }
    for (std::size_t i = 0; i < random.below(60); ++i) {
      Message& message = add(static_cast<Operation>(random.below(14)),
                             random.below(std::size_t{1} << random.below(26)),
                             static_cast<std::uint32_t>(random.below(22)));
      message.input_size = random.below(3) == 0 ? message.input_size : message.input_size & ~15ull;
    }
    expect_complete(make(1 + static_cast<unsigned>(random.below(9))));
  }
}

}  // namespace
}  // namespace nacre::engine
