// SPDX-License-Identifier: Apache-2.0
// Payloads on the engine: mixed messages, bad neighbours, many callers, the bounded queue.
#include "gpu_engine/engine.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"
#include "tests/gpu_engine/test_payload.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

constexpr CipherSuite suite = TestPayload::suite;

std::unique_ptr<Engine> make_threaded_engine(unsigned thread_count = 4,
                                             unsigned queued_payload_max = 64) {
  return Engine::create({.choice = test_engine_choice(),
                         .thread_count = thread_count,
                         .queued_payload_max = queued_payload_max})
      .value();
}

TEST(Engine, says_why_it_has_no_cuda_backend) {
  const auto engine = Engine::create({.choice = EngineChoice::cuda});
  if (engine.has_value()) GTEST_SKIP() << "this machine has a CUDA device";
  EXPECT_EQ(error_of(engine), ErrorCode::unsupported);
  const std::string& why = engine.error().message;
  EXPECT_NE(why.find("cuda: none ("), std::string::npos) << why;
  // The engine that makes do without says the same.
  const std::string name = Engine::create({.thread_count = 2}).value()->backend_name();
  EXPECT_TRUE(name.starts_with("cpu, 2 threads; cuda: none (")) << name;
  EXPECT_NE(why.find(name.substr(name.find("cuda: none ("))), std::string::npos) << name << why;
}

TEST(Engine, says_what_runs_it) {
  const auto engine = Engine::create({.choice = EngineChoice::cpu, .thread_count = 3});
  EXPECT_EQ(engine.value()->backend_name(), "cpu, 3 threads");
  EXPECT_TRUE(Engine::create({}).has_value());
}

TEST(Engine, an_empty_payload_is_done_at_once) {
  const auto engine = make_threaded_engine();
  Payload payload;
  engine->run(payload);
  EXPECT_TRUE(payload.results.empty());
  std::latch ended(1);
  engine->submit(payload, [&] { ended.count_down(); });
  ended.wait();
  EXPECT_EQ(engine->stats().payload_count, 2u);
}

TEST(Engine, seals_and_unseals_many_messages_of_all_sizes_kinds_and_keys) {
  TestRandom random;
  const auto engine = make_threaded_engine();
  const std::vector<Bytes> keys = {random.bytes(32), random.bytes(32), random.bytes(32)};
  std::vector<Bytes> plains;
  TestPayload sealing(*engine);
  for (const std::size_t size : edge_sizes) {
    for (const DataKind kind : data_kinds) {
      const auto index = static_cast<std::uint32_t>(plains.size());
      plains.push_back(make_data(kind, size, random));
      Message& message =
          sealing.add_seal(plains.back(), keys[index % 3], static_cast<Codec>(index % 3), index);
      message.identity[0] = static_cast<Byte>(index);
      message.epoch = index;
    }
  }
  engine->run(sealing.get());
  TestPayload opening(*engine, 16u << 20);
  for (std::size_t i = 0; i < plains.size(); ++i) {
    ASSERT_TRUE(sealing.result(i).ok) << i << ": " << sealing.result(i).detail;
    opening.add_unseal(sealing.output(i), keys[i % 3], plains[i].size()).identity[0] =
        static_cast<Byte>(i);
  }
  engine->run(opening.get());
  for (std::size_t i = 0; i < plains.size(); ++i) {
    ASSERT_TRUE(opening.result(i).ok) << i << ": " << opening.result(i).detail;
    ASSERT_TRUE(std::ranges::equal(opening.output(i), plains[i])) << i;
  }
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.payload_count, 2u);
  EXPECT_EQ(stats.message_count, 2 * plains.size());
  EXPECT_EQ(stats.failed_message_count, 0u);
  std::uint64_t input_bytes = 0, output_bytes = 0;
  for (TestPayload* const payload : {&sealing, &opening}) {
    for (const Message& message : payload->get().messages)
      input_bytes += message.input_size;
    for (const MessageResult& result : payload->get().results)
      output_bytes += result.output_size;
  }
  EXPECT_EQ(stats.input_bytes, input_bytes);
  EXPECT_EQ(stats.output_bytes, output_bytes);
}

// Adds unseals of count records of plain, which run() seals first, under counters from 0 on.
template <typename Run>
void add_unseals(TestPayload& opening, Engine& engine, const Bytes& key, const Bytes& plain,
                 std::size_t count, const Run& run) {
  TestPayload sealing(engine, count * plain.size() + 1);
  for (std::uint32_t i = 0; i < count; ++i)
    sealing.add_seal(plain, key, Codec::lz77, i);
  run(sealing.get());
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(sealing.result(i).ok);
    opening.add_unseal(sealing.output(i), key, plain.size());
  }
}

// The backend that fills a result clears it first.
TEST(Engine, keeps_no_result_of_an_earlier_run) {
  TestRandom random;
  const auto engine = make_threaded_engine();
  const auto run = [&](Payload& payload) { engine->run(payload); };
  const Bytes plain = make_data(DataKind::text, 65536, random);
  TestPayload opening(*engine);
  add_unseals(opening, *engine, random.bytes(32), plain, 40, run);
  run(opening.get());
  const Message& damaged = opening.get().messages[7];
  const_cast<Byte*>(opening.get().input)[damaged.input_offset + damaged.input_size / 2] ^= 1;
  run(opening.get());
  for (std::size_t i = 0; i < 40; ++i)
    EXPECT_EQ(opening.result(i).ok, i != 7) << i;
  EXPECT_EQ(opening.result(7).output_size, 0u);
}

TEST(Engine, mixes_operations_in_one_payload) {
  TestRandom random;
  const auto engine = make_threaded_engine();
  const Bytes key = random.bytes(32);
  const Bytes text = make_data(DataKind::text, 100000, random);
  TestPayload payload(*engine);
  payload.add_seal(ByteView(text).first(65536), key, Codec::zstd, 0);
  payload.add(Operation::compress, text, stream_size_bound(Codec::lz77, text.size())).codec =
      Codec::lz77;
  payload.add(Operation::checksum, text, 0);
  payload.add(Operation::checksum, {}, 0);
  engine->run(payload.get());
  for (std::size_t i = 0; i < 4; ++i)
    ASSERT_TRUE(payload.result(i).ok) << payload.result(i).detail;
  EXPECT_EQ(payload.result(2).crc32, crc32_reference(0, text));
  EXPECT_EQ(payload.result(3).crc32, 0u);

  TestPayload back(*engine);
  back.add_unseal(payload.output(0), key, 65536);
  back.add(Operation::decompress, payload.output(1), text.size()).codec = Codec::lz77;
  engine->run(back.get());
  ASSERT_TRUE(back.result(0).ok && back.result(1).ok);
  EXPECT_TRUE(std::ranges::equal(back.output(0), ByteView(text).first(65536)));
  EXPECT_TRUE(std::ranges::equal(back.output(1), text));
}

TEST(Engine, a_bad_message_never_fails_its_neighbours) {
  TestRandom random;
  for (const std::size_t plain_size : {500u, 65536u}) {  // inline, and over the workers
    const auto engine = make_threaded_engine();
    const Bytes key = random.bytes(32);
    const Bytes plain = make_data(DataKind::text, plain_size, random);
    constexpr std::size_t count = 30;
    TestPayload payload(*engine);
    for (std::uint32_t i = 0; i < count; ++i)
      payload.add_seal(plain, key, Codec::lz77, i);
    auto& messages = payload.get().messages;
    messages[1].key_index = 1;
    messages[2].input_offset = payload.get().input_size;
    messages[3].input_size = ~0ull;
    messages[4].output_capacity = 10;
    messages[5].output_offset = payload.get().output_size + 1;
    messages[6].output_offset = ~0ull;
    messages[7].codec = Codec{200};
    messages[8].level = 11;
    messages[9].operation = static_cast<Operation>(77);
    messages[10].key_index = payload.get().add_key(suite, Bytes(31));
    messages[11].operation = Operation::unseal;
    messages[12].operation = Operation::decompress;
    messages[12].codec = Codec::lz77;
    messages[13].operation = Operation::compress;
    messages[13].codec = Codec::lz77;
    messages[13].output_capacity = 5;
    engine->run(payload.get());
    const ErrorCode expected[] = {ErrorCode::stale,
                                  ErrorCode::invalid_argument,
                                  ErrorCode::invalid_argument,
                                  ErrorCode::invalid_argument,
                                  ErrorCode::range,
                                  ErrorCode::invalid_argument,
                                  ErrorCode::invalid_argument,
                                  ErrorCode::unsupported,
                                  ErrorCode::invalid_argument,
                                  ErrorCode::unsupported,
                                  ErrorCode::invalid_argument,
                                  ErrorCode::corrupt,
                                  ErrorCode::corrupt,
                                  ErrorCode::range};
    for (std::size_t i = 0; i < count; ++i) {
      const bool good = i == 0 || i > 13;
      ASSERT_EQ(payload.result(i).ok, good) << i << ": " << payload.result(i).detail;
      if (good) continue;
      EXPECT_EQ(payload.result(i).error, expected[i]) << i << ": " << payload.result(i).detail;
      EXPECT_STRNE(payload.result(i).detail, "");
    }
    EXPECT_EQ(engine->stats().failed_message_count, 13u);

    TestPayload back(*engine);
    back.add_unseal(payload.output(0), key, plain_size);
    for (std::size_t i = 14; i < count; ++i)
      back.add_unseal(payload.output(i), key, plain_size);
    engine->run(back.get());
    for (std::size_t i = 0; i < back.get().messages.size(); ++i)
      EXPECT_TRUE(back.result(i).ok && std::ranges::equal(back.output(i), plain));
  }
}

// The long one would be cut into parts, which have ways of their own to their input.
TEST(Engine, a_checksum_with_offsets_outside_the_payload_is_refused_at_every_size) {
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 2}).value();
  const Bytes input(8u << 20, 1);
  Payload payload;
  payload.input = input.data();
  payload.input_size = input.size();
  for (const std::uint64_t size : {std::uint64_t{1000}, std::uint64_t{input.size()}}) {
    payload.messages.clear();
    for (int i = 0; i < 3; ++i) {
      Message& message = payload.messages.emplace_back();
      message.operation = Operation::checksum;
      message.input_size = size;
    }
    payload.messages[0].output_offset = 1;
    payload.messages[1].aad_offset = input.size() + 1;
    engine->run(payload);
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(payload.results[i].ok) << size << " bytes, message " << i;
      EXPECT_EQ(payload.results[i].error, ErrorCode::invalid_argument);
    }
    EXPECT_TRUE(payload.results[2].ok);
    EXPECT_EQ(payload.results[2].crc32, crc32(0, ByteView(input).first(size)));
  }
}

TEST(Engine, a_payload_is_used_again_after_clear) {
  TestRandom random;
  const auto engine = make_threaded_engine();
  Arena memory = engine->allocate(1u << 20).value();
  random.fill({memory.data(), 1000});
  Payload payload;
  payload.input = memory.data();
  payload.input_size = 1000;
  payload.output = memory.data() + 1000;
  payload.output_size = memory.size() - 1000;
  for (int round = 0; round < 3; ++round) {
    payload.clear();
    Message message;
    message.operation = Operation::checksum;
    message.input_size = 1000;
    payload.messages.assign(static_cast<std::size_t>(round + 1), message);
    engine->run(payload);
    ASSERT_EQ(payload.results.size(), static_cast<std::size_t>(round + 1));
    for (const MessageResult& result : payload.results)
      EXPECT_EQ(result.crc32, crc32_reference(0, {memory.data(), 1000}));
  }
}

// Seals count messages, and checks that they open.
void seal_and_open(Engine& engine, const Bytes& key, const Bytes& plain, std::size_t count,
                   bool by_submit) {
  const auto run = [&](Payload& payload) {
    if (!by_submit) return engine.run(payload);
    std::latch ended(1);
    engine.submit(payload, [&] { ended.count_down(); });
    ended.wait();
  };
  TestPayload opening(engine, count * (plain.size() + 200));
  add_unseals(opening, engine, key, plain, count, run);
  run(opening.get());
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_TRUE(opening.result(i).ok && std::ranges::equal(opening.output(i), plain));
}

TEST(Engine, serves_many_callers_at_once) {
  TestRandom random;
  for (const unsigned thread_count : {1u, 4u}) {
    const auto engine = make_threaded_engine(thread_count, 2);
    std::vector<Bytes> plains;
    for (std::size_t t = 0; t < 6; ++t)
      plains.push_back(make_data(DataKind::mixed, 1000 + 12345 * t, random));
    std::vector<std::thread> callers;
    for (std::size_t t = 0; t < plains.size(); ++t) {
      callers.emplace_back([&, t] {
        for (int round = 0; round < 5; ++round)
          seal_and_open(*engine, Bytes(32, static_cast<Byte>(t)), plains[t], 1 + 7 * t, t % 2 == 0);
      });
    }
    for (std::thread& caller : callers)
      caller.join();
    EXPECT_EQ(engine->stats().payload_count, 6u * 5 * 2);
    EXPECT_EQ(engine->stats().failed_message_count, 0u);
  }
}

TEST(Engine, submit_blocks_while_the_queue_is_full) {
  const auto engine = make_threaded_engine(1, 2);
  std::latch release(1);
  std::atomic<int> ended = 0;
  std::array<Payload, 5> payloads;
  std::atomic<int> accepted = 0;
  std::thread submitter([&] {
    for (Payload& payload : payloads) {
      engine->submit(payload, [&] {
        release.wait();
        ++ended;
      });
      ++accepted;
    }
  });
  // One is with the worker, two wait; the fourth must not get in before one of them ends.
  while (accepted < 3)
    std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(accepted, 3);
  EXPECT_EQ(ended, 0);
  release.count_down();
  submitter.join();
  EXPECT_EQ(accepted, 5);
  while (ended < 5)
    std::this_thread::yield();
}

TEST(Engine, done_may_submit_again_into_a_full_queue) {
  const auto engine = make_threaded_engine(1, 1);
  std::array<Payload, 40> payloads;
  std::atomic<std::size_t> next = 0;
  std::latch ended(static_cast<std::ptrdiff_t>(payloads.size()));
  std::function<void()> chain = [&] {
    for (int i = 0; i < 2; ++i) {
      const std::size_t index = next++;
      if (index < payloads.size())
        engine->submit(payloads[index], [&] {
          chain();
          ended.count_down();
        });
    }
  };
  chain();
  ended.wait();
  EXPECT_EQ(engine->stats().payload_count, payloads.size());
}

TEST(Engine, done_may_run_a_large_payload_on_the_only_worker) {
  TestRandom random;
  const auto engine = make_threaded_engine(1);
  const Bytes plain = make_data(DataKind::text, 60000, random);
  Payload first;
  std::latch ended(1);
  engine->submit(first, [&] {
    seal_and_open(*engine, Bytes(32), plain, 20, false);
    ended.count_down();
  });
  ended.wait();
  EXPECT_EQ(engine->stats().message_count, 40u);
}

TEST(Engine, done_comes_after_the_last_result_and_off_the_callers_thread) {
  TestRandom random;
  const auto engine = make_threaded_engine(2);
  const Bytes plain = make_data(DataKind::text, 20000, random);
  TestPayload payload(*engine);
  for (std::uint32_t i = 0; i < 40; ++i)
    payload.add_seal(plain, Bytes(32), Codec::lz77, i);
  std::latch ended(1);
  std::thread::id where;
  bool all_there = false;
  engine->submit(payload.get(), [&] {
    where = std::this_thread::get_id();
    all_there = std::ranges::all_of(payload.get().results, [](const auto& r) { return r.ok; });
    ended.count_down();
  });
  ended.wait();
  EXPECT_TRUE(all_there);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(Engine, an_exception_out_of_done_ends_no_thread) {
  const auto engine = make_threaded_engine(1);
  Payload first;
  Payload second;
  engine->submit(first, [] { throw 1; });
  std::latch ended(1);
  engine->submit(second, [&] { ended.count_down(); });
  ended.wait();
}

TEST(Engine, its_end_waits_for_what_was_submitted) {
  TestRandom random;
  const Bytes plain = make_data(DataKind::text, 60000, random);
  std::atomic<int> ended = 0;
  std::vector<std::unique_ptr<TestPayload>> payloads;
  {
    const auto engine = make_threaded_engine(2);
    for (int i = 0; i < 10; ++i) {
      payloads.push_back(std::make_unique<TestPayload>(*engine, 1u << 20));
      for (std::uint32_t m = 0; m < 10; ++m)
        payloads.back()->add_seal(plain, Bytes(32), Codec::lz77, m);
      engine->submit(payloads.back()->get(), [&] { ++ended; });
    }
  }
  EXPECT_EQ(ended, 10);
  for (const auto& payload : payloads)
    EXPECT_TRUE(payload->result(9).ok);
}

TEST(Engine, its_threads_take_no_signals) {
  const auto engine = make_threaded_engine(1);
  Payload payload;
  sigset_t blocked;
  std::latch ended(1);
  engine->submit(payload, [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    ended.count_down();
  });
  ended.wait();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM})
    EXPECT_EQ(sigismember(&blocked, signal), 1) << signal;
  sigset_t own;
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0) << "the caller's mask is put back";
}

}  // namespace
}  // namespace nacre::engine
