// SPDX-License-Identifier: Apache-2.0
// Devices that fail: whichever call of the runtime does, the cpu gives the results.
#include <cuda_runtime_api.h>

#include <atomic>

#include "gpu_engine/cuda/runtime.h"
#include "tests/gpu_engine/cuda_engine_fixture.h"

namespace nacre::engine {
namespace {

// Input and output may be the same memory: a batch that fails on its way out must find its input.
TEST_F(CudaEngine, encrypts_in_place_whatever_fails) {
  constexpr std::size_t message_size = 100000;
  constexpr std::size_t message_count = 60;
  const Bytes key = random_.bytes(32);
  const Bytes plain = random_.bytes(message_size * message_count);
  const auto build = [&](Payload& payload, Byte* memory, std::size_t spacing) {
    payload.input = payload.output = memory;
    payload.input_size = payload.output_size = spacing * message_count;
    const std::uint32_t ctr = payload.add_key(BlockCipher::aes_256, CipherMode::ctr, key);
    for (std::size_t i = 0; i < message_count; ++i) {
      std::copy_n(plain.begin() + static_cast<std::ptrdiff_t>(i * message_size), message_size,
                  memory + i * spacing);
      payload.messages.push_back({.operation = Operation::encrypt,
                                  .key_index = ctr,
                                  .input_offset = i * spacing,
                                  .input_size = message_size,
                                  .output_offset = i * spacing,
                                  .output_capacity = message_size});
    }
  };
  for (const std::size_t spacing : {message_size, message_size + 32}) {  // one run, and many
    Bytes expected(spacing * message_count);
    Payload on_cpu;
    build(on_cpu, expected.data(), spacing);
    cpu_->run(on_cpu);
    for (unsigned nth = 1; nth <= 30; ++nth) {
      Arena memory = cuda_->allocate(spacing * message_count).value();
      Payload on_cuda;
      build(on_cuda, memory.data(), spacing);
      cuda::inject_fault(cuda::Fault::launch_failure, nth);
      cuda_->run(on_cuda);
      cuda::inject_fault(cuda::Fault::none, 0);
      for (const MessageResult& result : on_cuda.results)
        ASSERT_TRUE(result.ok) << result.detail;
      ASSERT_TRUE(std::ranges::equal(expected, ByteView(memory.data(), memory.size())))
          << "spacing " << spacing << ", call " << nth;
    }
  }
}

// Work of a lost device is not lost, and the engine can still allocate memory.
TEST_F(CudaEngine, goes_on_without_its_device) {
  Maker maker(*cpu_, random_);
  std::vector<Item> items;
  for (int i = 0; i < 50; ++i)
    items.push_back(maker.make());
  Built before(items, cuda_.get(), random_);
  cuda::inject_fault(cuda::Fault::lost_device, 1);
  Built after(items, cuda_.get(), random_);
  Built on_cpu(items, nullptr, random_);
  cuda_->run(before.get());
  cuda_->run(after.get());
  cuda::inject_fault(cuda::Fault::none, 0);
  cpu_->run(on_cpu.get());
  expect_same(items, before, on_cpu, *cpu_, random_);
  expect_same(items, after, on_cpu, *cpu_, random_);
}

class CudaEngineFaults : public CudaEngine, public testing::WithParamInterface<cuda::Fault> {
 protected:
  void TearDown() override { cuda::inject_fault(cuda::Fault::none, 0); }
};

// Whichever call of the runtime fails, the cpu gives the results that the device did not.
TEST_P(CudaEngineFaults, lose_nothing) {
  Maker maker(*cpu_, random_);
  std::vector<Item> items;
  for (int i = 0; i < 100; ++i)
    items.push_back(maker.make());
  Built on_cpu(items, nullptr, random_);
  cpu_->run(on_cpu.get());
  std::uint64_t failed_before = 0;
  unsigned failed_rounds = 0;
  const bool is_loss = GetParam() == cuda::Fault::lost_device;
  std::atomic<int> warnings = 0;
  int device_count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&device_count), cudaSuccess);
  for (unsigned nth = 1; nth <= 60; nth += 1 + nth / 8) {
    // A lost device stays lost.
    if (is_loss || nth == 1) {
      failed_before = 0;
      warnings = 0;
      cuda_.reset();
      auto made =
          Engine::create({.choice = EngineChoice::cuda, .warn = [&](std::string_view text) {
                            ++warnings;
                            EXPECT_NE(text.find("cpu"), std::string_view::npos) << text;
                            EXPECT_EQ(text.find("from now on") != std::string_view::npos, is_loss)
                                << text;
                          }});
      ASSERT_TRUE(made) << made.error().message;
      cuda_ = std::move(*made);
    }
    Built on_cuda(items, nullptr, random_);
    cuda::inject_fault(GetParam(), nth);
    cuda_->run(on_cuda.get());
    cuda::inject_fault(cuda::Fault::none, 0);
    expect_same(items, on_cuda, on_cpu, *cpu_, random_);
    const std::uint64_t failed = cuda_->stats().cuda_failed_batch_count;
    failed_rounds += failed > failed_before;
    failed_before = failed;
    // One warning for each device, however often it fails.
    EXPECT_EQ(warnings > 0, failed > 0);
    EXPECT_LE(warnings, device_count);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(failed_rounds, 3u);
  if (is_loss) return;
  // A call that failed once works again.
  const std::uint64_t before = cuda_->stats().cuda_message_count;
  Built again(items, nullptr, random_);
  cuda_->run(again.get());
  expect_same(items, again, on_cpu, *cpu_, random_);
  EXPECT_GT(cuda_->stats().cuda_message_count, before);
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, failed_before);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CudaEngineFaults,
                         testing::Values(cuda::Fault::out_of_memory, cuda::Fault::launch_failure,
                                         cuda::Fault::lost_device));

}  // namespace
}  // namespace nacre::engine
