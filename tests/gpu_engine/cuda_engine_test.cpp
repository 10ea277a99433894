// SPDX-License-Identifier: Apache-2.0
// The engine with devices compared with the engine without. The same payloads give the same
// results, whatever they mix, and each engine reads what the other wrote.
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cuda/tuning.h"
#include "tests/gpu_engine/cuda_engine_fixture.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/test_payload.h"

namespace nacre::engine {
namespace {

TEST_F(CudaEngine, gives_the_cpus_results_for_any_mixture) {
  const std::size_t count = std::max<std::size_t>(400 / test_part(), 10);
  for (const bool pinned : {true, false}) {
    for (int round = 0; round < 4; ++round) {
      Maker maker(*cpu_, random_);
      std::vector<Item> items;
      for (std::size_t i = 0; i < count; ++i)
        items.push_back(maker.make());
      TestRandom layout;
      Built on_cuda(items, pinned ? cuda_.get() : nullptr, layout);
      Built on_cpu(items, nullptr, layout);
      cuda_->run(on_cuda.get());
      cpu_->run(on_cpu.get());
      expect_same(items, on_cuda, on_cpu, *cpu_, random_);
      if (HasFatalFailure()) return;
    }
  }
  const EngineStats stats = cuda_->stats();
  EXPECT_GT(stats.cuda_message_count, 5 * count / 2);
  EXPECT_EQ(stats.cuda_failed_batch_count, 0u);
}

TEST_F(CudaEngine, tells_for_how_long_each_device_was_busy) {
  const auto busy_ns = [&] {
    std::uint64_t sum = 0, bytes = 0;
    for (const DeviceStats& device : cuda_->stats().devices) {
      EXPECT_FALSE(device.is_lost);
      EXPECT_FALSE(device.name.empty());
      sum += device.busy_ns;
      bytes += device.input_bytes;
    }
    EXPECT_EQ(bytes, cuda_->stats().cuda_input_bytes);
    return sum;
  };
  const std::uint64_t before = busy_ns();
  const auto begun = std::chrono::steady_clock::now();
  Maker maker(*cpu_, random_);
  std::vector<Item> items;
  for (int i = 0; i < 200; ++i)
    items.push_back(maker.make());
  Built built(items, cuda_.get(), random_);
  cuda_->run(built.get());
  const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
  const std::uint64_t busy = busy_ns() - before;
  EXPECT_GT(busy, 0u);
  EXPECT_LE(busy, cuda_->stats().devices.size() * static_cast<std::uint64_t>(took.count()));
  // Nothing runs now, so nothing is counted.
  EXPECT_EQ(busy_ns(), before + busy);
}

TEST_F(CudaEngine, takes_chunks_of_every_size) {
  Maker maker(*cpu_, random_);
  std::vector<Item> items;
  for (const std::size_t size : edge_sizes) {
    for (const DataKind kind : data_kinds) {
      Item item = maker.seal();
      item.use.suite = CipherSuite::aes_256_gcm;
      item.key = random_.bytes(32);
      item.message.codec = Codec::lz77;
      item.input = make_data(kind, size, random_);
      item.message.output_capacity =
          record_size_bound(item.use.suite, item.message.padding, item.input.size());
      items.push_back(std::move(item));
    }
  }
  Built on_cuda(items, cuda_.get(), random_);
  Built on_cpu(items, nullptr, random_);
  cuda_->run(on_cuda.get());
  cpu_->run(on_cpu.get());
  expect_same(items, on_cuda, on_cpu, *cpu_, random_);
  EXPECT_EQ(cuda_->stats().cuda_message_count, items.size());
}

// A device samples, leaves noise alone and codes the rest as the cpu would, but for the bytes.
TEST_F(CudaEngine, chooses_for_auto_as_the_cpu_does) {
  std::vector<Item> items;
  for (const std::size_t size : {0u, 1u, 4095u, 4096u, 20000u, 65535u, 65536u, 65537u, 262144u}) {
    for (const DataKind kind : data_kinds) {
      for (const Operation operation : {Operation::seal, Operation::compress}) {
        Item item;
        item.input = make_data(kind, size, random_);
        item.message.operation = operation;
        item.message.codec = Codec::automatic;
        item.message.level = 1;
        item.message.counter = static_cast<std::uint32_t>(items.size());
        item.message.output_capacity = stream_size_bound(Codec::automatic, size);
        if (operation == Operation::seal) {
          item.key = Bytes(32, 9);
          item.message.output_capacity = record_size_bound(item.use.suite, Padding::none, size);
        }
        items.push_back(std::move(item));
      }
    }
  }
  Built on_cuda(items, cuda_.get(), random_);
  Built on_cpu(items, nullptr, random_);
  cuda_->run(on_cuda.get());
  cpu_->run(on_cpu.get());
  expect_same(items, on_cuda, on_cpu, *cpu_, random_);
  EXPECT_EQ(cuda_->stats().cuda_message_count, items.size());
  int coded = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    // A page carries some 200 bytes without data, so only the cpu makes pages of short inputs.
    if (items[i].input.size() < 4096) continue;
    EXPECT_EQ(on_cuda.result(i).codec, on_cpu.result(i).codec) << "message " << i;
    coded += on_cuda.result(i).codec == Codec::gdeflate;
  }
  EXPECT_GE(coded, 24);
}

// Devices open and decode what only the cpu seals, at any level and size; damaged frames have the
// cpu's verdict.
TEST_F(CudaEngine, reads_zstd_that_the_cpu_writes) {
  const Bytes key = random_.bytes(32);
  std::vector<Bytes> plains;
  for (const std::size_t size : edge_sizes)
    for (const DataKind kind : data_kinds)
      plains.push_back(make_data(kind, size, random_));
  constexpr std::size_t total = 32u << 20;
  TestPayload written(*cpu_, total);
  for (std::size_t i = 0; i < plains.size(); ++i) {
    const auto counter = static_cast<std::uint32_t>(i);
    const auto level = static_cast<std::int8_t>(i % 8);
    written.add_seal(plains[i], key, Codec::zstd, counter).level = level;
    Message& message = written.add(Operation::compress, plains[i],
                                   stream_size_bound(Codec::zstd, plains[i].size()));
    message.codec = Codec::zstd;
    message.level = level;
  }
  cpu_->run(written.get());
  for (const bool damaged : {false, true}) {
    TestPayload on_cuda(*cuda_, total);
    TestPayload on_cpu(*cpu_, total);
    for (std::size_t i = 0; i < plains.size(); ++i) {
      Bytes record(written.output(2 * i).begin(), written.output(2 * i).end());
      Bytes stream(written.output(2 * i + 1).begin(), written.output(2 * i + 1).end());
      if (damaged && !stream.empty()) {
        record[random_.below(record.size())] ^= 1;
        stream[random_.below(stream.size())] ^= static_cast<Byte>(1u << random_.below(8));
      }
      for (TestPayload* const read : {&on_cuda, &on_cpu}) {
        read->add_unseal(record, key, plains[i].size()).codec = Codec::zstd;
        read->add(Operation::decompress, stream, plains[i].size()).codec = Codec::zstd;
      }
    }
    const std::uint64_t before = cuda_->stats().cuda_message_count;
    cuda_->run(on_cuda.get());
    cpu_->run(on_cpu.get());
    for (std::size_t i = 0; i < 2 * plains.size(); ++i) {
      ASSERT_EQ(on_cuda.result(i).ok, on_cpu.result(i).ok) << "message " << i;
      if (!on_cpu.result(i).ok) {
        ASSERT_EQ(on_cuda.result(i).error, on_cpu.result(i).error) << "message " << i;
        continue;
      }
      ASSERT_TRUE(std::ranges::equal(on_cuda.output(i), on_cpu.output(i))) << "message " << i;
    }
    if (!damaged) {
      EXPECT_EQ(cuda_->stats().cuda_message_count - before, 2 * plains.size());
      for (std::size_t i = 0; i < 2 * plains.size(); ++i)
        ASSERT_TRUE(std::ranges::equal(on_cuda.output(i), plains[i / 2])) << "message " << i;
    }
  }
}

// The inputs lie in more runs than are copied one by one, up to the last byte of the memory, and at
// any address.
TEST_F(CudaEngine, reads_inputs_that_lie_apart) {
  constexpr std::size_t message_count = 300;
  Payload payload;
  std::size_t used = 1;
  for (std::size_t i = 0; i < message_count; ++i) {
    const std::size_t size = i < 40 ? i : random_.below(i % 10 == 0 ? 200'000 : 5000);
    payload.messages.push_back({.operation = Operation::checksum,
                                .input_offset = used,
                                .input_size = size,
                                .checksum = i % 2 == 0 ? Checksum::crc32 : Checksum::crc32c});
    used += size + (i + 1 < message_count ? 129 + random_.below(300) : 0);
  }
  Arena arena = cuda_->allocate(used).value();
  random_.fill({arena.data(), used});
  payload.input = arena.data();
  payload.input_size = used;
  cuda_->run(payload);
  for (std::size_t i = 0; i < message_count; ++i) {
    const Message& message = payload.messages[i];
    const ByteView data(arena.data() + message.input_offset, message.input_size);
    ASSERT_TRUE(payload.results[i].ok) << payload.results[i].detail;
    if (message.checksum == Checksum::crc32) {
      ASSERT_EQ(payload.results[i].crc32, crc32(0, data)) << "message " << i;
    } else {
      ASSERT_EQ(payload.results[i].crc32c, crc32c(0, data)) << "message " << i;
    }
  }
  EXPECT_EQ(cuda_->stats().cuda_message_count, message_count);
}

TEST_F(CudaEngine, reads_what_both_engines_write_in_many_batches) {
  // More than the slots hold at once.
  constexpr std::size_t message_count = 6000;
  Maker maker(*cpu_, random_);
  const Bytes key = random_.bytes(32);
  std::vector<Item> items(message_count);
  for (std::size_t i = 0; i < message_count; ++i) {
    Item& item = items[i];
    item.input = make_data(data_kinds[i % data_kinds.size()], 65536, random_);
    item.key = key;
    item.message.operation = Operation::seal;
    item.message.codec = Codec::lz77;
    item.message.counter = static_cast<std::uint32_t>(i);
    item.message.output_capacity = record_size_bound(item.use.suite, Padding::none, 65536);
  }
  Built sealed(items, cuda_.get(), random_);
  cuda_->run(sealed.get());
  std::vector<Item> opening(message_count);
  for (std::size_t i = 0; i < message_count; ++i) {
    ASSERT_TRUE(sealed.result(i).ok) << sealed.result(i).detail;
    Item& item = opening[i];
    item.key = key;
    item.input.assign(sealed.output(i).begin(), sealed.output(i).end());
    item.message.operation = Operation::unseal;
    item.message.output_capacity = 65536;
  }
  Built opened(opening, cuda_.get(), random_);
  cuda_->run(opened.get());
  for (std::size_t i = 0; i < message_count; ++i) {
    ASSERT_TRUE(opened.result(i).ok) << i << ": " << opened.result(i).detail;
    ASSERT_TRUE(std::ranges::equal(opened.output(i), items[i].input)) << i;
  }
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
}

TEST_F(CudaEngine, serves_many_callers_at_once) {
  std::vector<std::vector<Item>> lists;
  Maker maker(*cpu_, random_);
  for (int i = 0; i < 12; ++i) {
    std::vector<Item>& items = lists.emplace_back();
    for (int m = 0; m < 60; ++m)
      items.push_back(maker.make());
  }
  std::vector<std::unique_ptr<Built>> on_cuda;
  std::vector<std::unique_ptr<Built>> on_cpu;
  for (const auto& items : lists) {
    on_cuda.push_back(std::make_unique<Built>(items, cuda_.get(), random_));
    on_cpu.push_back(std::make_unique<Built>(items, nullptr, random_));
    cpu_->run(on_cpu.back()->get());
  }
  std::latch ended(static_cast<std::ptrdiff_t>(lists.size()));
  std::atomic<std::size_t> done_count = 0;
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    if (i % 2 == 0) {
      cuda_->submit(on_cuda[i]->get(), [&] {
        ++done_count;
        ended.count_down();
      });
    } else {
      callers.emplace_back([&, i] {
        cuda_->run(on_cuda[i]->get());
        ended.count_down();
      });
    }
  }
  ended.wait();
  for (std::thread& caller : callers)
    caller.join();
  cuda_.reset();
  EXPECT_EQ(done_count, lists.size() / 2);
  for (std::size_t i = 0; i < lists.size(); ++i)
    expect_same(lists[i], *on_cuda[i], *on_cpu[i], *cpu_, random_);
}

// Each payload has one message with real work. Payloads that no thread has taken yet count, up to
// the bound.
TEST_F(CudaEngine, submit_blocks_while_the_queue_is_full) {
  cuda_.reset();
  cuda_ = Engine::create({.choice = EngineChoice::cuda, .queued_payload_max = 1}).value();
  int device_count = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&device_count));
  const std::size_t slot_max = cuda::slots_per_device * static_cast<std::size_t>(device_count);
  Maker maker(*cpu_, random_);
  std::vector<std::vector<Item>> lists(slot_max + 12);
  std::vector<std::unique_ptr<Built>> on_cuda;
  std::vector<std::unique_ptr<Built>> on_cpu;
  for (auto& items : lists) {
    items.push_back(maker.checksum());
    on_cuda.push_back(std::make_unique<Built>(items, cuda_.get(), random_));
    on_cpu.push_back(std::make_unique<Built>(items, nullptr, random_));
    cpu_->run(on_cpu.back()->get());
  }
  std::latch release(1);
  std::atomic<std::size_t> in_done = 0;
  std::atomic<std::size_t> accepted = 0;
  std::latch ended(static_cast<std::ptrdiff_t>(lists.size()));
  std::jthread submitter([&] {
    for (const auto& built : on_cuda) {
      cuda_->submit(built->get(), [&] {
        ++in_done;
        release.wait();
        ended.count_down();
      });
      ++accepted;
    }
  });
  // Every slot's thread holds one that has ended, and one waits; the next must not get in.
  while (in_done == 0)
    std::this_thread::yield();
  for (std::size_t before = 0; before != accepted;) {
    before = accepted;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const std::size_t held = in_done;
  EXPECT_EQ(accepted, held + 1);
  EXPECT_LE(held, slot_max);
  release.count_down();
  ended.wait();
  submitter.join();
  EXPECT_EQ(accepted, lists.size());
  for (std::size_t i = 0; i < lists.size(); ++i)
    expect_same(lists[i], *on_cuda[i], *on_cpu[i], *cpu_, random_);
}

// All slots' threads are in done() when each runs one more payload.
TEST_F(CudaEngine, runs_payloads_within_done) {
  int device_count = 0;
  ASSERT_CUDA(cudaGetDeviceCount(&device_count));
  const std::size_t count = 3 * cuda::slots_per_device * static_cast<std::size_t>(device_count);
  Maker maker(*cpu_, random_);
  std::vector<std::vector<Item>> lists(2 * count);
  std::vector<std::unique_ptr<Built>> on_cuda;
  std::vector<std::unique_ptr<Built>> on_cpu;
  for (auto& items : lists) {
    for (int i = 0; i < 3; ++i)
      items.push_back(maker.make());
    on_cuda.push_back(std::make_unique<Built>(items, nullptr, random_));
    on_cpu.push_back(std::make_unique<Built>(items, nullptr, random_));
    cpu_->run(on_cpu.back()->get());
  }
  std::latch ended(static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    cuda_->submit(on_cuda[i]->get(), [&, i] {
      cuda_->run(on_cuda[count + i]->get());
      ended.count_down();
    });
  }
  ended.wait();
  for (std::size_t i = 0; i < lists.size(); ++i)
    expect_same(lists[i], *on_cuda[i], *on_cpu[i], *cpu_, random_);
}

TEST_F(CudaEngine, takes_a_key_for_each_of_many_messages) {
  std::vector<Item> items(12000);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i].use.suite = CipherSuite::aes_256_gcm;
    items[i].key = random_.bytes(32);
    items[i].input = random_.bytes(random_.below(100));
    items[i].message.operation = Operation::encrypt;
    items[i].message.output_capacity = items[i].input.size() + 16;
  }
  Built on_cuda(items, cuda_.get(), random_);
  Built on_cpu(items, nullptr, random_);
  cuda_->run(on_cuda.get());
  cpu_->run(on_cpu.get());
  expect_same(items, on_cuda, on_cpu, *cpu_, random_);
  EXPECT_EQ(cuda_->stats().cuda_message_count, items.size());
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
}

TEST_F(CudaEngine, takes_payloads_past_4_gib) {
  constexpr std::size_t message_size = 16u << 20;
  constexpr std::size_t message_count = 280;
  auto input = cuda_->allocate(message_size * message_count);
  auto output = cuda_->allocate(message_size * message_count);
  if (!input || !output) GTEST_SKIP() << "no memory for two times 4.4 GiB";
  const Bytes pattern = random_.bytes(1u << 20);
  for (std::size_t at = 0; at < input->size(); at += pattern.size()) {
    std::ranges::copy(pattern, input->data() + at);
    store_le(input->data() + at, std::uint64_t{at});
  }
  Payload payload;
  payload.input = input->data();
  payload.input_size = input->size();
  payload.output = output->data();
  payload.output_size = output->size();
  const std::uint32_t key =
      payload.add_key(BlockCipher::aes_256, CipherMode::ctr, random_.bytes(32));
  for (std::size_t i = 0; i < message_count; ++i) {
    Message message = {.operation = i % 2 == 0 ? Operation::encrypt : Operation::checksum,
                       .key_index = key,
                       .input_offset = i * message_size,
                       .input_size = message_size,
                       .output_offset = i * message_size,
                       .output_capacity = message_size};
    message.iv[0] = static_cast<Byte>(i);
    payload.messages.push_back(message);
  }
  cuda_->run(payload);
  EXPECT_EQ(cuda_->stats().cuda_message_count, message_count);
  // The last ones lie past 4 GiB.
  for (const std::size_t i :
       {std::size_t{0}, std::size_t{1}, message_count - 2, message_count - 1}) {
    ASSERT_TRUE(payload.results[i].ok) << payload.results[i].detail;
    Bytes expected(message_size);
    Payload one = {.input = payload.input,
                   .input_size = payload.input_size,
                   .output = expected.data(),
                   .output_size = expected.size()};
    one.key_table = payload.key_table;
    one.keys = payload.keys.clone();
    one.messages = {payload.messages[i]};
    one.messages[0].output_offset = 0;
    cpu_->run(one);
    ASSERT_TRUE(one.results[0].ok);
    EXPECT_EQ(payload.results[i].crc32, one.results[0].crc32);
    if (i % 2 == 0) {
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(),
                             payload.output + payload.messages[i].output_offset));
    }
  }
}

TEST_F(CudaEngine, measures_what_its_kernels_take) {
  Maker maker(*cpu_, random_);
  std::vector<Item> items(64);
  for (std::size_t i = 0; i < items.size(); ++i) {
    items[i] = maker.seal();
    items[i].use.suite = CipherSuite::aes_256_gcm;
    items[i].key = random_.bytes(32);
    items[i].message.codec = Codec::lz77;
    items[i].message.level = 1;
    items[i].message.output_capacity =
        record_size_bound(items[i].use.suite, items[i].message.padding, items[i].input.size());
  }
  Built on_cuda(items, cuda_.get(), random_);
  Built on_cpu(items, nullptr, random_);
  const auto seconds = cuda_->measure_resident(on_cuda.get(), 3);
  ASSERT_TRUE(seconds) << seconds.error().message;
  EXPECT_GT(*seconds, 0);
  cpu_->run(on_cpu.get());
  expect_same(items, on_cuda, on_cpu, *cpu_, random_);
  EXPECT_FALSE(cpu_->measure_resident(on_cuda.get(), 3));
}

}  // namespace
}  // namespace nacre::engine
