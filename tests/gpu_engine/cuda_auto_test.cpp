// SPDX-License-Identifier: Apache-2.0
// The engine auto on a machine with devices: payloads that both backends share, with costs that
// force it, and with those that are measured.
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <thread>

#include "gpu_engine/cuda/cuda_backend.h"
#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/plan/cost_model.h"
#include "gpu_engine/plan/planner.h"
#include "gpu_engine/publickey/rsa.h"
#include "tests/gpu_engine/cuda_engine_fixture.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/support/temporary_directory.h"

namespace nacre::engine {
namespace {

class CudaAuto : public CudaEngine {
 protected:
  void SetUp() override {
    CudaEngine::SetUp();
    if (cuda_ == nullptr) return;
    // Costs with which devices get two thirds of every payload that is large enough.
    CostModel::Costs cpu, cuda;
    for (std::size_t work = 0; work < work_class_count; ++work) {
      for (std::size_t i = 0; i < CostModel::size_count; ++i) {
        cpu[work][i] = static_cast<double>(CostModel::sizes[i]);
        cuda[work][i] = cpu[work][i] / 2;
      }
    }
    const std::string cpu_name = cpu_->backend_name();
    const std::string both = cuda_->backend_name();
    cuda_.reset();
    file_ = directory_.path() + "/engine-costs";
    CostModel(cpu, cuda, WorkClasses().set())
        .write(file_, CostModel::machine(cpu_name, both.substr(0, both.rfind("; " + cpu_name))));
    make();
  }
  void TearDown() override { cuda::inject_fault(cuda::Fault::none, 0); }

  // Chunks of text under one key, to be coded by lz77.
  std::vector<Item> chunks_to_seal(std::size_t count) {
    std::vector<Item> items(count);
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i].input = make_data(DataKind::text, 65536, random_);
      items[i].key = Bytes(32, 3);
      Message& message = items[i].message;
      message.operation = Operation::seal;
      message.codec = Codec::lz77;
      message.counter = static_cast<std::uint32_t>(i);
      message.output_capacity = record_size_bound(items[i].use.suite, Padding::none, 65536);
    }
    return items;
  }

  // Makes an engine whose costs stay as they are: its clock stands still, so it learns nothing.
  void make() {
    auto_.reset();
    auto_ = make_engine(Planner::create({.warn =
                                             [this](std::string_view text) {
                                               const std::lock_guard lock(mutex_);
                                               warnings_.emplace_back(text);
                                             },
                                         .cost_file = file_},
                                        CudaBackend::create, [] { return std::uint64_t{0}; })
                            .value());
  }
  std::vector<Item> make_items(std::size_t count) {
    Maker maker(*cpu_, random_);
    std::vector<Item> items;
    for (std::size_t i = 0; i < count; ++i)
      items.push_back(maker.make());
    return items;
  }
  // Some items of every kind, then many of two kinds, of which each is large enough to be split.
  std::vector<Item> make_large_kinds() {
    Maker maker(*cpu_, random_);
    std::vector<Item> items = make_items(30);
    for (int i = 0; i < 160; ++i) {
      items.push_back(i % 2 == 0 ? maker.checksum() : maker.seal());
      Item& item = items.back();
      item.message.checksum = Checksum::crc32;
      if (i % 2 == 0) continue;
      item.use.suite = CipherSuite::aes_256_gcm;
      item.key = Bytes(32, 3);
      item.message.codec = Codec::lz77;
      item.message.level = 1;
      item.message.output_capacity =
          record_size_bound(item.use.suite, item.message.padding, item.input.size());
    }
    return items;
  }
  void run(Payload& payload, bool by_submit) {
    if (!by_submit) return auto_->run(payload);
    std::latch ended(1);
    auto_->submit(payload, [&] { ended.count_down(); });
    ended.wait();
  }

  const tests::TemporaryDirectory directory_;
  std::string file_;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  std::unique_ptr<Engine> auto_;
};

TEST_F(CudaAuto, gives_the_cpus_results_for_any_mixture_that_it_splits) {
  for (std::size_t round = 0; round < std::max<std::size_t>(4 / test_part(), 2); ++round) {
    const std::vector<Item> items = make_items(600);
    TestRandom layout;
    Built dealt_out(items, round < 2 ? auto_.get() : nullptr, layout);
    Built on_cpu(items, nullptr, layout);
    run(dealt_out.get(), round % 2 == 1);
    cpu_->run(on_cpu.get());
    expect_same(items, dealt_out, on_cpu, *cpu_, random_);
    if (HasFatalFailure()) return;
  }
  const EngineStats stats = auto_->stats();
  EXPECT_GT(stats.cuda_message_count, 20u);
  EXPECT_LT(stats.cuda_message_count, stats.message_count);
  EXPECT_EQ(stats.cuda_failed_batch_count, 0u);
  EXPECT_TRUE(warnings_.empty());
}

// The work, besides records, on which auto is compared with each backend alone: ciphers that are
// slow on the cpu or serial on a device, and RSA.
struct Figure {
  const char* name;
  KeyUse use;
  Operation operation;
  std::size_t message_count;
};
constexpr KeyUse block_cipher_use(BlockCipher cipher, CipherMode mode) {
  return {.kind = KeyKind::block_cipher, .cipher = cipher, .mode = mode};
}
constexpr std::array figures = {
    Figure{"des-ctr, encrypt", block_cipher_use(BlockCipher::des, CipherMode::ctr),
           Operation::encrypt, 256},
    Figure{"des-cbc, encrypt", block_cipher_use(BlockCipher::des, CipherMode::cbc),
           Operation::encrypt, 256},
    Figure{"des-cbc, decrypt", block_cipher_use(BlockCipher::des, CipherMode::cbc),
           Operation::decrypt, 256},
    Figure{"des-ede3-ctr, encrypt", block_cipher_use(BlockCipher::des_ede3, CipherMode::ctr),
           Operation::encrypt, 256},
    Figure{"des-ede3-ofb, encrypt", block_cipher_use(BlockCipher::des_ede3, CipherMode::ofb),
           Operation::encrypt, 256},
    Figure{"aes-256-ofb, encrypt", block_cipher_use(BlockCipher::aes_256, CipherMode::ofb),
           Operation::encrypt, 256},
    Figure{"aes-256-ofb, decrypt", block_cipher_use(BlockCipher::aes_256, CipherMode::ofb),
           Operation::decrypt, 256},
    Figure{"rsa-2048, private", {.kind = KeyKind::rsa_private}, Operation::rsa_private, 1024},
    Figure{"rsa-2048, public", {.kind = KeyKind::rsa_private}, Operation::rsa_public, 8192}};

// Chunks of 64 KiB, or numbers below a modulus of 2,048 bits.
std::vector<Item> items_of(const Figure& figure, TestRandom& random) {
  const bool is_rsa = figure.use.kind == KeyKind::rsa_private;
  Bytes key;
  if (is_rsa) {
    const SecretBytes der =
        RsaPrivateKey::from_pem(read_vector("rsa/test_key_pkcs8.pem")).value().to_der().value();
    key.assign(der.view().begin(), der.view().end());
  } else {
    key = random.bytes(key_size_bytes(figure.use.cipher));
  }
  std::vector<Item> items(figure.message_count / std::min<std::size_t>(test_part(), 4));
  for (Item& item : items) {
    item.use = figure.use;
    item.key = key;
    item.input = random.bytes(is_rsa ? 256 : 65536);
    if (is_rsa) item.input[0] = 0;
    item.message.operation = figure.operation;
    random.fill(item.message.iv);
    item.message.output_capacity = item.input.size();
  }
  return items;
}

TEST_F(CudaAuto, splits_ciphers_and_rsa_operations) {
  for (const Figure& figure : figures) {
    // Other tests run these kernels under a sanitizer, with fewer messages.
    if (test_part() > 1 && figure.use.kind == KeyKind::rsa_private) continue;
    SCOPED_TRACE(figure.name);
    const std::vector<Item> items = items_of(figure, random_);
    const std::uint64_t before = auto_->stats().cuda_message_count;
    Built dealt_out(items, auto_.get(), random_);
    Built on_cpu(items, nullptr, random_);
    run(dealt_out.get(), false);
    cpu_->run(on_cpu.get());
    expect_same(items, dealt_out, on_cpu, *cpu_, random_);
    const auto count = static_cast<double>(items.size());
    const auto by_devices = static_cast<double>(auto_->stats().cuda_message_count - before);
    EXPECT_NEAR(by_devices, count * 2 / 3, count / 8);
  }
  EXPECT_EQ(auto_->stats().cuda_failed_batch_count, 0u);
}

TEST_F(CudaAuto, splits_messages_of_one_kind) {
  const std::vector<Item> items = chunks_to_seal(256);
  for (const bool by_submit : {false, true}) {
    const std::uint64_t before = auto_->stats().cuda_message_count;
    Built dealt_out(items, auto_.get(), random_);
    Built on_cpu(items, nullptr, random_);
    run(dealt_out.get(), by_submit);
    cpu_->run(on_cpu.get());
    expect_same(items, dealt_out, on_cpu, *cpu_, random_);
    const std::uint64_t by_devices = auto_->stats().cuda_message_count - before;
    EXPECT_NEAR(static_cast<double>(by_devices), 171.0, 32.0);
  }
}

// The costs are far from the times that the backends take, and the clock runs. So now and then the
// engine changes its choice.
TEST_F(CudaAuto, gives_the_cpus_results_while_it_learns) {
  auto_ = Engine::create({.cost_file = file_}).value();
  const std::vector<Item> items = chunks_to_seal(16);
  Built on_cpu(items, nullptr, random_);
  cpu_->run(on_cpu.get());
  Built dealt_out(items, auto_.get(), random_);
  const std::size_t payload_count = std::max<std::size_t>(400 / test_part(), 10);
  for (std::size_t i = 0; i < payload_count; ++i)
    run(dealt_out.get(), i % 2 == 1);
  expect_same(items, dealt_out, on_cpu, *cpu_, random_);
  const EngineStats stats = auto_->stats();
  EXPECT_GT(stats.cuda_message_count, 0u);
  EXPECT_EQ(stats.message_count, payload_count * items.size());
  EXPECT_EQ(stats.cuda_failed_batch_count, 0u);
}

TEST_F(CudaAuto, serves_many_callers_at_once) {
  std::vector<std::vector<Item>> lists(8);
  for (auto& items : lists)
    items = make_large_kinds();
  std::vector<std::unique_ptr<Built>> dealt_out;
  std::vector<std::unique_ptr<Built>> on_cpu;
  for (const auto& items : lists) {
    dealt_out.push_back(std::make_unique<Built>(items, auto_.get(), random_));
    on_cpu.push_back(std::make_unique<Built>(items, nullptr, random_));
    cpu_->run(on_cpu.back()->get());
  }
  std::latch ended(static_cast<std::ptrdiff_t>(lists.size()));
  {
    std::vector<std::jthread> callers;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      callers.emplace_back([&, i] {
        run(dealt_out[i]->get(), i % 2 == 0);
        ended.count_down();
      });
    }
  }
  ended.wait();
  EXPECT_GT(auto_->stats().cuda_message_count, 0u);
  for (std::size_t i = 0; i < lists.size(); ++i)
    expect_same(lists[i], *dealt_out[i], *on_cpu[i], *cpu_, random_);
}

TEST_F(CudaAuto, loses_nothing_whatever_call_fails) {
  const std::vector<Item> items = make_large_kinds();
  Built on_cpu(items, nullptr, random_);
  cpu_->run(on_cpu.get());
  for (const cuda::Fault fault :
       {cuda::Fault::out_of_memory, cuda::Fault::launch_failure, cuda::Fault::lost_device}) {
    unsigned failed_rounds = 0;
    for (const unsigned nth : {1u, 2u, 3u, 5u, 9u, 17u, 33u}) {
      if (fault == cuda::Fault::lost_device) make();
      const std::uint64_t before = auto_->stats().cuda_failed_batch_count;
      Built dealt_out(items, nullptr, random_);
      cuda::inject_fault(fault, nth);
      run(dealt_out.get(), nth % 2 == 0);
      cuda::inject_fault(cuda::Fault::none, 0);
      expect_same(items, dealt_out, on_cpu, *cpu_, random_);
      if (HasFatalFailure()) return;
      failed_rounds += auto_->stats().cuda_failed_batch_count > before;
    }
    EXPECT_GT(failed_rounds, 2u);
  }
  EXPECT_FALSE(warnings_.empty());
}

// An earlier failure, after which the device worked again, must not hide the loss.
TEST_F(CudaAuto, says_that_a_device_failed_and_later_that_it_is_lost) {
  const std::vector<Item> items = make_large_kinds();
  const auto run_with = [&](cuda::Fault fault) {
    Built dealt_out(items, nullptr, random_);
    cuda::inject_fault(fault, 1);
    run(dealt_out.get(), false);
    cuda::inject_fault(cuda::Fault::none, 0);
  };
  const auto said = [&](std::string_view words) {
    return std::ranges::count_if(
        warnings_, [&](const std::string& text) { return text.find(words) != std::string::npos; });
  };
  int device_count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&device_count), cudaSuccess);
  for (int i = 0; i < 3; ++i)
    run_with(cuda::Fault::out_of_memory);
  EXPECT_GE(warnings_.size(), 1u);
  EXPECT_LE(warnings_.size(), static_cast<std::size_t>(device_count));
  EXPECT_EQ(said("from now on"), 0);
  for (int i = 0; i < 3; ++i)
    run_with(cuda::Fault::lost_device);
  EXPECT_GE(said("from now on"), 1);
  EXPECT_LE(said("from now on"), device_count);
}

TEST_F(CudaAuto, measures_what_every_class_costs_and_keeps_it) {
  file_ = directory_.path() + "/measured/engine-costs";
  make();
  EXPECT_TRUE(warnings_.empty()) << warnings_.front();
  ASSERT_TRUE(std::filesystem::exists(file_));
  std::ifstream in(file_);
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  for (std::string_view backend : {"cpu", "cuda"}) {
    for (std::size_t i = 0; i < work_class_count; ++i) {
      ASSERT_TRUE(std::getline(in, line));
      std::cout << backend << ": " << line << "\n";
    }
  }
  ASSERT_TRUE(std::getline(in, line));
  std::cout << "split: " << line << "\n";
  const std::vector<Item> items = make_large_kinds();
  Built dealt_out(items, auto_.get(), random_);
  Built on_cpu(items, nullptr, random_);
  run(dealt_out.get(), false);
  cpu_->run(on_cpu.get());
  expect_same(items, dealt_out, on_cpu, *cpu_, random_);
}

}  // namespace
}  // namespace nacre::engine
