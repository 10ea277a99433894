// SPDX-License-Identifier: Apache-2.0
// Payloads that keep their order. Messages encrypt the same bytes in place. Ciphers do not commute,
// so the result shows in which order the messages ended.
#include <gtest/gtest.h>

#include <latch>

#include "gpu_engine/engine.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"

namespace nacre::engine {
namespace {

struct Step {
  BlockCipher cipher;
  CipherMode mode;
};
// Serial and parallel ones in turn, dear ones behind cheap ones; no two neighbours share lanes.
constexpr Step steps[] = {
    {BlockCipher::aes_128, CipherMode::ctr}, {BlockCipher::aes_256, CipherMode::cbc},
    {BlockCipher::aes_256, CipherMode::ecb}, {BlockCipher::des_ede3, CipherMode::cbc},
    {BlockCipher::aes_256, CipherMode::cbc}, {BlockCipher::des, CipherMode::ecb},
    {BlockCipher::aes_192, CipherMode::ecb}, {BlockCipher::aes_128, CipherMode::cbc},
};

// Steps in place over the same bytes, round and round.
class Chain {
 public:
  Chain(std::size_t size, std::size_t step_count, TestRandom& random)
      : bytes_(random.bytes(size)), expected_(bytes_) {
    payload_.input = payload_.output = bytes_.data();
    payload_.input_size = payload_.output_size = size;
    payload_.order = MessageOrder::as_given;
    for (std::size_t i = 0; i < step_count; ++i) {
      const Step& step = steps[i % std::size(steps)];
      const Bytes key = random.bytes(key_size_bytes(step.cipher));
      Message& message = payload_.messages.emplace_back();
      message.operation = Operation::encrypt;
      message.input_size = message.output_capacity = size;
      message.key_index = payload_.add_key(step.cipher, step.mode, key);
      random.fill(message.iv);
      CipherKey::create(step.cipher, step.mode, key, CryptoImplementation::openssl)
          .value()
          ->crypt(Direction::encrypt, message.iv, expected_, expected_);
    }
  }

  Payload& payload() { return payload_; }
  bool has_run_in_order() const {
    for (const MessageResult& result : payload_.results)
      EXPECT_TRUE(result.ok) << result.detail;
    return bytes_ == expected_;
  }

 private:
  Bytes bytes_;
  Bytes expected_;
  Payload payload_;
};

TEST(EngineOrder, one_thread_ends_each_message_before_the_next) {
  TestRandom random;
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 1}).value();
  for (const std::size_t size : {48u, 4800u, 480000u}) {
    for (const std::size_t step_count : {1u, 2u, 7u, 40u}) {
      Chain run(size, step_count, random);
      engine->run(run.payload());
      EXPECT_TRUE(run.has_run_in_order()) << size << " bytes, " << step_count << " steps";

      Chain submitted(size, step_count, random);
      std::latch ended(1);
      engine->submit(submitted.payload(), [&] { ended.count_down(); });
      ended.wait();
      EXPECT_TRUE(submitted.has_run_in_order()) << size << " bytes, " << step_count << " steps";
    }
  }
}

// A payload that is too small for two threads runs on one.
TEST(EngineOrder, a_small_payload_ends_in_order_on_any_engine) {
  TestRandom random;
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 4}).value();
  for (int round = 0; round < 100; ++round) {
    Chain run(48, std::size(steps), random);
    engine->run(run.payload());
    ASSERT_TRUE(run.has_run_in_order());
  }
}

TEST(EngineOrder, a_payload_keeps_its_order_when_cleared) {
  Payload payload;
  EXPECT_EQ(payload.order, MessageOrder::soonest);
  payload.order = MessageOrder::as_given;
  payload.clear();
  EXPECT_EQ(payload.order, MessageOrder::as_given);
}

// Order or none, every message has its result at its place, and a bad one fails no neighbour.
TEST(EngineOrder, results_are_the_same_in_either_order) {
  TestRandom random;
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 3}).value();
  Bytes input = random.bytes(4u << 20);
  std::vector<Bytes> outputs;
  for (const MessageOrder order : {MessageOrder::soonest, MessageOrder::as_given}) {
    Bytes& output = outputs.emplace_back(input.size());
    Payload payload;
    payload.order = order;
    payload.input = input.data();
    payload.output = output.data();
    payload.input_size = payload.output_size = input.size();
    const std::uint32_t keys[] = {
        payload.add_key(BlockCipher::aes_256, CipherMode::cbc, Bytes(32, 1)),
        payload.add_key(BlockCipher::aes_256, CipherMode::ctr, Bytes(32, 2)),
        payload.add_key(BlockCipher::des, CipherMode::cbc, Bytes(8, 3))};
    std::size_t at = 0;
    for (std::size_t i = 0; at + 100000 < input.size(); ++i) {
      Message& message = payload.messages.emplace_back();
      message.operation = Operation::encrypt;
      message.input_offset = message.output_offset = at;
      message.input_size = message.output_capacity = 16 * (1 + i * 7919 % 6000);
      message.key_index = i % 10 == 9 ? 99 : keys[i % 3];
      at += message.input_size;
    }
    engine->run(payload);
    for (std::size_t i = 0; i < payload.results.size(); ++i)
      EXPECT_EQ(payload.results[i].ok, i % 10 != 9) << i;
  }
  EXPECT_TRUE(outputs[0] == outputs[1]);
}

}  // namespace
}  // namespace nacre::engine
