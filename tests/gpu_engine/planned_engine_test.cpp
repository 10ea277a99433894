// SPDX-License-Identifier: Apache-2.0
// The engine over two backends, of which one stands in for devices: what the planner deals out, and
// how two backends end one payload.
#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "gpu_engine/cpu/cpu_backend.h"
#include "gpu_engine/plan/planner.h"
#include "tests/gpu_engine/fake_device.h"
#include "tests/gpu_engine/payload_mixtures.h"
#include "tests/gpu_engine/test_payload.h"
#include "tests/support/temporary_directory.h"

namespace nacre::engine {
namespace {

// A backend that needs latency_ns for a payload, and ns_per_byte for each of its bytes.
CostModel::Costs linear(double latency_ns, double ns_per_byte) {
  CostModel::Costs costs;
  for (auto& of_class : costs) {
    for (std::size_t i = 0; i < CostModel::size_count; ++i)
      of_class[i] = latency_ns + ns_per_byte * static_cast<double>(CostModel::sizes[i]);
  }
  return costs;
}

class PlannedEngineTest : public testing::Test {
 protected:
  static constexpr unsigned cpu_threads = 2;

  DeviceMaker devices(unsigned slots) {
    return [this, slots](const CudaOptions&, Backend& cpu) {
      return Result<std::unique_ptr<DeviceBackend>>(
          std::make_unique<FakeDevice>(device_name_, device_, cpu, slots));
    };
  }
  std::unique_ptr<Engine> automatic(const CostModel::Costs& cpu, const CostModel::Costs& cuda,
                                    unsigned slots = 2) {
    return automatic(cpu, cuda, WorkClasses().set(), slots);
  }
  // Makes an automatic engine with these costs of the cpu and of the device. splits: the classes in
  // which both together are faster than one. The costs stay as they are: no time passes, so nothing
  // is learned, unless a test moves the clock.
  std::unique_ptr<Engine> automatic(const CostModel::Costs& cpu, const CostModel::Costs& cuda,
                                    const WorkClasses& splits, unsigned slots = 2) {
    const std::string cpu_name = CpuBackend::create(cpu_threads, 1).value()->name();
    const std::string file = directory_.path() + "/" + std::to_string(file_count_++);
    CostModel(cpu, cuda, splits).write(file, CostModel::machine(cpu_name, device_name_));
    return make_engine(
        Planner::create({.thread_count = cpu_threads, .cost_file = file}, devices(slots), [this] {
          return now_ns_.load();
        }).value());
  }
  std::unique_ptr<Engine> on_device(unsigned slots, unsigned queued_payload_max = 64) {
    return make_engine(Planner::create({.choice = EngineChoice::cuda,
                                        .thread_count = cpu_threads,
                                        .queued_payload_max = queued_payload_max},
                                       devices(slots))
                           .value());
  }

  const tests::TemporaryDirectory directory_;
  int file_count_ = 0;
  std::atomic<std::uint64_t> now_ns_ = 0;
  const std::string device_name_ = "cuda, stand-in";
  const std::shared_ptr<DeviceState> device_ = std::make_shared<DeviceState>();
  const std::unique_ptr<Engine> cpu_ = Engine::create({.choice = EngineChoice::cpu}).value();
  TestRandom random_;
};

void run_by_submit(Engine& engine, Payload& payload) {
  std::latch ended(1);
  engine.submit(payload, [&] { ended.count_down(); });
  ended.wait();
}

TEST_F(PlannedEngineTest, gives_the_cpus_results_for_any_mixture_that_it_splits) {
  const auto engine = automatic(linear(0, 1), linear(1e4, 0.5));
  std::uint64_t message_count = 0;
  std::uint64_t input_bytes = 0;
  for (int round = 0; round < 4; ++round) {
    Maker maker(*cpu_, random_);
    std::vector<Item> items;
    for (int i = 0; i < 400; ++i)
      items.push_back(maker.make());
    message_count += items.size();
    TestRandom layout;
    Built dealt_out(items, engine.get(), layout);
    Built on_cpu(items, nullptr, layout);
    for (const Message& message : dealt_out.get().messages)
      input_bytes += message.input_size;
    if (round % 2 == 0)
      engine->run(dealt_out.get());
    else
      run_by_submit(*engine, dealt_out.get());
    cpu_->run(on_cpu.get());
    expect_same(items, dealt_out, on_cpu, *cpu_, random_);
    if (HasFatalFailure()) return;
  }
  // Among this many kinds, a few have enough messages for the device.
  EXPECT_GT(device_->message_count, 10u);
  EXPECT_LT(device_->message_count, message_count);
  EXPECT_EQ(engine->stats().message_count, message_count);
  EXPECT_EQ(engine->stats().cuda_message_count, device_->message_count);
  EXPECT_EQ(engine->stats().input_bytes, input_bytes);
}

TEST_F(PlannedEngineTest, tells_what_each_device_did_since_costs_were_measured) {
  device_->busy_ns = 700;
  const auto engine = automatic(linear(0, 1), linear(0, 1));
  ASSERT_EQ(engine->stats().devices.size(), 1u);
  EXPECT_EQ(engine->stats().devices.front().busy_ns, 0u);
  device_->busy_ns = 1000;
  device_->load_factor = 0;
  const DeviceStats device = engine->stats().devices.front();
  EXPECT_EQ(device.name, "fake");
  EXPECT_EQ(device.number, 3);
  EXPECT_EQ(device.busy_ns, 300u);
  EXPECT_EQ(device.input_bytes, 600u);
  EXPECT_TRUE(device.is_lost);
}

TEST_F(PlannedEngineTest, splits_messages_of_one_kind_where_both_gain) {
  const auto engine = automatic(linear(0, 1), linear(0, 1));
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  constexpr std::uint32_t count = 128;
  for (const bool by_submit : {false, true}) {
    TestPayload payload(*engine, count * plain.size());
    for (std::uint32_t i = 0; i < count; ++i)
      payload.add_seal(plain, Bytes(32), Codec::lz77, i);
    const std::uint64_t before = device_->message_count;
    if (by_submit)
      run_by_submit(*engine, payload.get());
    else
      engine->run(payload.get());
    const std::uint64_t mine = device_->message_count - before;
    EXPECT_NEAR(static_cast<double>(mine), count / 2, count / 8);
    for (std::uint32_t i = 0; i < count; ++i)
      ASSERT_TRUE(payload.result(i).ok) << i;
  }
}

TEST_F(PlannedEngineTest, leaves_small_payloads_and_given_orders_to_the_cpu) {
  const auto engine = automatic(linear(0, 1), linear(0, 0.01));
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  for (const std::uint32_t count : {1u, 7u, 64u}) {
    for (const MessageOrder order : {MessageOrder::soonest, MessageOrder::as_given}) {
      TestPayload payload(*engine, count * plain.size());
      payload.get().order = order;
      for (std::uint32_t i = 0; i < count; ++i)
        payload.add_seal(plain, Bytes(32), Codec::lz77, i);
      const std::uint64_t before = device_->message_count;
      engine->run(payload.get());
      EXPECT_EQ(device_->message_count > before, count == 64 && order == MessageOrder::soonest)
          << count;
      EXPECT_TRUE(payload.result(count - 1).ok);
    }
  }
}

// The device is the better one at gdeflate alone.
TEST_F(PlannedEngineTest, deals_each_codec_out_by_its_own_cost) {
  CostModel::Costs cuda = linear(0, 2);
  for (const WorkKind kind :
       {WorkKind::seal, WorkKind::unseal, WorkKind::compress, WorkKind::decompress}) {
    for (double& ns : cuda[index_of({kind, Codec::gdeflate})])
      ns /= 100;
  }
  const auto engine = automatic(linear(0, 1), cuda, WorkClasses());
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  constexpr std::uint32_t count = 32;
  const auto share_of = [&](TestPayload& payload) {
    const std::uint64_t before = device_->message_count;
    engine->run(payload.get());
    for (std::uint32_t i = 0; i < count; ++i)
      EXPECT_TRUE(payload.result(i).ok) << i;
    return device_->message_count - before;
  };
  for (const Codec codec : {Codec::lz77, Codec::gdeflate, Codec::huffman}) {
    const std::uint64_t wanted = codec == Codec::gdeflate ? count : 0;
    TestPayload sealed(*engine, count * plain.size());
    TestPayload coded(*engine, count * plain.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      sealed.add_seal(plain, Bytes(32), codec, i).level = 1;
      Message& message = coded.add(Operation::compress, plain, 2 * plain.size());
      message.codec = codec;
      message.level = 1;
    }
    EXPECT_EQ(share_of(sealed), wanted) << to_string(codec);
    EXPECT_EQ(share_of(coded), wanted) << to_string(codec);
    TestPayload opened(*engine, count * plain.size());
    TestPayload unknown(*engine, count * plain.size());
    TestPayload decoded(*engine, count * plain.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      opened.add_unseal(sealed.output(i), Bytes(32), plain.size()).codec = codec;
      unknown.add_unseal(sealed.output(i), Bytes(32), plain.size());
      decoded.add(Operation::decompress, coded.output(i), plain.size()).codec = codec;
    }
    EXPECT_EQ(share_of(opened), wanted) << to_string(codec);
    EXPECT_EQ(share_of(unknown), wanted) << "as those before: " << to_string(codec);
    EXPECT_EQ(share_of(decoded), wanted) << to_string(codec);
  }
}

// Also those of zstd, which no device seals.
TEST_F(PlannedEngineTest, lets_devices_open_records_of_any_codec) {
  const auto engine = automatic(linear(0, 1), linear(0, 0.01));
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  constexpr std::uint32_t count = 32;
  for (const Codec codec : {Codec::zstd, Codec::lz77, Codec::zstd}) {
    TestPayload sealed(*cpu_, count * plain.size());
    for (std::uint32_t i = 0; i < count; ++i)
      sealed.add_seal(plain, Bytes(32), codec, i);
    cpu_->run(sealed.get());
    for (int round = 0; round < 2; ++round) {
      TestPayload opened(*engine, count * plain.size());
      for (std::uint32_t i = 0; i < count; ++i)
        opened.add_unseal(sealed.output(i), Bytes(32), plain.size());
      const std::uint64_t before = device_->message_count;
      engine->run(opened.get());
      const bool on_device = device_->message_count > before;
      EXPECT_TRUE(on_device) << to_string(codec);
      EXPECT_TRUE(opened.result(count - 1).ok);
    }
  }
}

// Chunks that no codec makes smaller lie between others.
TEST_F(PlannedEngineTest, counts_mixed_records_as_what_most_of_them_are) {
  CostModel::Costs cuda = linear(0, 2);
  for (double& ns : cuda[index_of({WorkKind::unseal, Codec::none})])
    ns /= 100;
  const auto engine = automatic(linear(0, 1), cuda, WorkClasses());
  const Bytes text = make_data(DataKind::text, 65536, random_);
  const Bytes noise = make_data(DataKind::random, 65536, random_);
  constexpr std::uint32_t count = 32;
  for (const std::uint32_t noise_count : {4u, 28u}) {
    TestPayload sealed(*engine, count * text.size());
    for (std::uint32_t i = 0; i < count; ++i)
      sealed.add_seal(i < noise_count ? noise : text, Bytes(32), Codec::lz77, i);
    engine->run(sealed.get());
    TestPayload opened(*engine, (count + 1) * text.size());
    for (std::uint32_t i = 0; i < count; ++i)
      opened.add_unseal(sealed.output(i), Bytes(32), text.size()).codec = Codec::lz77;
    const std::uint64_t before = device_->message_count;
    engine->run(opened.get());
    EXPECT_EQ(device_->message_count - before, noise_count == 28 ? count : 0);
  }
}

// One thread of a device has the whole of a serial message.
TEST_F(PlannedEngineTest, leaves_long_serial_messages_to_the_cpu) {
  CostModel::Costs cuda = linear(1e5, 0.02);
  for (double& ns : cuda[index_of({WorkKind::crypt_serial})])
    ns += 3e6;
  const auto engine = automatic(linear(0, 1), cuda);
  constexpr std::size_t size = 32u << 20;
  for (const CipherMode mode : {CipherMode::cbc, CipherMode::ctr}) {
    for (const std::size_t count : {4, 512}) {
      TestPayload payload(*engine, size);
      const std::uint32_t key = payload.get().add_key(BlockCipher::aes_256, mode, Bytes(32));
      for (std::size_t i = 0; i < count; ++i)
        payload.add(Operation::encrypt, Bytes(size / count), size / count).key_index = key;
      const std::uint64_t before = device_->message_count;
      engine->run(payload.get());
      const bool is_long = mode == CipherMode::cbc && count == 4;
      EXPECT_EQ(device_->message_count > before, !is_long) << count << " messages";
      EXPECT_TRUE(payload.result(0).ok);
    }
  }
}

TEST_F(PlannedEngineTest, serves_many_callers_on_two_backends_at_once) {
  std::vector<std::vector<Item>> lists(8);
  Maker maker(*cpu_, random_);
  for (auto& items : lists) {
    for (int i = 0; i < 60; ++i)
      items.push_back(maker.make());
    // Many messages of one kind, enough to be split between backends.
    for (int i = 0; i < 60; ++i) {
      items.push_back(maker.checksum());
      items.back().message.checksum = Checksum::crc32c;
    }
  }
  std::vector<std::unique_ptr<Built>> dealt_out;
  std::vector<std::unique_ptr<Built>> on_cpu;
  std::atomic<std::size_t> done_count = 0;
  {
    const auto engine = automatic(linear(0, 1), linear(1e3, 0.5));
    std::vector<std::jthread> callers;
    for (const auto& items : lists) {
      dealt_out.push_back(std::make_unique<Built>(items, nullptr, random_));
      on_cpu.push_back(std::make_unique<Built>(items, nullptr, random_));
      cpu_->run(on_cpu.back()->get());
    }
    for (std::size_t i = 0; i < lists.size(); ++i) {
      Payload& payload = dealt_out[i]->get();
      if (i % 2 == 0)
        engine->submit(payload, [&] { ++done_count; });
      else
        callers.emplace_back([&engine, &payload] { engine->run(payload); });
    }
  }  // waits for what was submitted
  EXPECT_EQ(done_count, lists.size() / 2);
  EXPECT_GT(device_->message_count, 0u);
  for (std::size_t i = 0; i < lists.size(); ++i)
    expect_same(lists[i], *dealt_out[i], *on_cpu[i], *cpu_, random_);
}

TEST_F(PlannedEngineTest, uses_the_cpu_alone_once_every_device_is_lost) {
  const auto engine = automatic(linear(0, 1), linear(0, 0.01));
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  device_->failed_batch_count = 3;
  for (const double load : {1.0, 0.0}) {
    device_->load_factor = load;
    TestPayload payload(*engine, 64 * plain.size());
    for (std::uint32_t i = 0; i < 64; ++i)
      payload.add_seal(plain, Bytes(32), Codec::lz77, i);
    const std::uint64_t before = device_->message_count;
    engine->run(payload.get());
    EXPECT_EQ(device_->message_count > before, load == 1.0);
    EXPECT_TRUE(payload.result(63).ok);
  }
  EXPECT_EQ(engine->stats().cuda_failed_batch_count, 3u);
}

// A device that takes eight times as long as was measured loses its work to the cpu.
TEST_F(PlannedEngineTest, learns_what_parts_really_take) {
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  constexpr std::uint32_t count = 32;
  device_->before_run = [this] { now_ns_ += 8u * count * 65536 / 2; };
  for (const bool by_submit : {false, true}) {
    const auto engine = automatic(linear(0, 1), linear(0, 0.5), WorkClasses());
    std::vector<std::uint64_t> on_device;
    for (int i = 0; i < 4; ++i) {
      TestPayload payload(*engine, count * plain.size());
      for (std::uint32_t m = 0; m < count; ++m)
        payload.add_seal(plain, Bytes(32), Codec::lz77, m);
      const std::uint64_t before = device_->message_count;
      if (by_submit)
        run_by_submit(*engine, payload.get());
      else
        engine->run(payload.get());
      on_device.push_back(device_->message_count - before);
      EXPECT_TRUE(payload.result(count - 1).ok);
    }
    EXPECT_EQ(on_device, (std::vector<std::uint64_t>{count, count, 0, 0}));
  }
}

// If a run within done() waited for a device, there might be no thread left that does the device's
// work.
TEST_F(PlannedEngineTest, runs_payloads_within_done_without_waiting_for_its_own_thread) {
  constexpr int slots = 2;
  const auto engine = on_device(slots);
  const Bytes plain = make_data(DataKind::text, 60000, random_);
  constexpr int payload_count = 3 * slots;
  std::vector<std::unique_ptr<TestPayload>> outer;
  std::vector<std::unique_ptr<TestPayload>> inner;
  for (int i = 0; i < payload_count; ++i) {
    for (auto* list : {&outer, &inner}) {
      list->push_back(std::make_unique<TestPayload>(*engine, 1u << 20));
      for (std::uint32_t m = 0; m < 10; ++m)
        list->back()->add_seal(plain, Bytes(32), Codec::lz77, m);
    }
  }
  std::latch all_slots_are_in_done(slots);
  std::latch ended(payload_count);
  std::atomic<int> entered = 0;
  for (std::size_t i = 0; i < outer.size(); ++i) {
    engine->submit(outer[i]->get(), [&, i] {
      if (entered++ < slots) all_slots_are_in_done.arrive_and_wait();
      engine->run(inner[i]->get());
      ended.count_down();
    });
  }
  ended.wait();
  for (const auto& payload : inner)
    EXPECT_TRUE(payload->result(9).ok);
  EXPECT_EQ(device_->message_count, 10u * payload_count) << "what done() ran was the cpu's";
}

TEST_F(PlannedEngineTest, submits_within_done_to_both_backends) {
  const auto engine = automatic(linear(0, 1), linear(0, 1), 1);
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  std::vector<std::unique_ptr<TestPayload>> payloads;
  for (int i = 0; i < 12; ++i) {
    payloads.push_back(std::make_unique<TestPayload>(*engine, 32 * plain.size()));
    for (std::uint32_t m = 0; m < 32; ++m)
      payloads.back()->add_seal(plain, Bytes(32), Codec::lz77, m);
  }
  std::latch ended(static_cast<std::ptrdiff_t>(payloads.size()));
  std::atomic<std::size_t> next = 0;
  std::function<void()> chain = [&] {
    const std::size_t i = next++;
    if (i < payloads.size())
      engine->submit(payloads[i]->get(), [&] {
        chain();
        ended.count_down();
      });
  };
  chain();
  chain();
  ended.wait();
  EXPECT_GT(device_->message_count, 0u);
  for (const auto& payload : payloads)
    EXPECT_TRUE(payload->result(31).ok);
}

TEST_F(PlannedEngineTest, says_why_it_has_no_devices) {
  const DeviceMaker none = [](const CudaOptions&, Backend&) {
    return Result<std::unique_ptr<DeviceBackend>>(
        fail(ErrorCode::unsupported, "cuda: none (a test took it away)"));
  };
  const auto name = [&](EngineChoice choice) {
    return make_engine(Planner::create({.choice = choice, .thread_count = 2}, none).value())
        ->backend_name();
  };
  EXPECT_EQ(name(EngineChoice::automatic), "cpu, 2 threads; cuda: none (a test took it away)");
  EXPECT_EQ(name(EngineChoice::cpu), "cpu, 2 threads") << "nobody asked for one";
  const auto refused = Planner::create({.choice = EngineChoice::cuda}, none);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("a test took it away"), std::string::npos);
}

TEST_F(PlannedEngineTest, warns_once_where_costs_cannot_be_measured) {
  device_->has_memory = false;
  std::vector<std::string> warnings;
  const auto engine =
      make_engine(Planner::create({.thread_count = cpu_threads,
                                   .warn = [&](auto text) { warnings.emplace_back(text); }},
                                  devices(1))
                      .value());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("cpu alone"), std::string::npos) << warnings[0];
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  TestPayload payload(*engine, 64 * plain.size());
  for (std::uint32_t i = 0; i < 64; ++i)
    payload.add_seal(plain, Bytes(32), Codec::lz77, i);
  engine->run(payload.get());
  EXPECT_TRUE(payload.result(63).ok);
  EXPECT_EQ(device_->message_count, 0u);
  EXPECT_EQ(warnings.size(), 1u);
}

TEST_F(PlannedEngineTest, keeps_measured_costs_for_the_next_engine) {
  const std::string file = directory_.path() + "/cache/engine-costs";
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t before = device_->submission_count;
    const auto made = Planner::create({.thread_count = cpu_threads, .cost_file = file}, devices(1));
    ASSERT_TRUE(made);
    EXPECT_EQ(device_->submission_count > before, round == 0);
  }
  const std::string cpu_name = CpuBackend::create(cpu_threads, 1).value()->name();
  EXPECT_TRUE(CostModel::read(file, CostModel::machine(cpu_name, device_name_), 1));
}

}  // namespace
}  // namespace nacre::engine
