// SPDX-License-Identifier: Apache-2.0
// Memory of devices and page-locked memory that an engine holds: allocated once, and wiped while
// payloads run.
#include <atomic>
#include <latch>
#include <thread>

#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/forget_keys.h"
#include "tests/gpu_engine/cuda_engine_fixture.h"
#include "tests/gpu_engine/cuda_test_device.h"

namespace nacre::engine {
namespace {

void expect_equal(const cuda::RuntimeCounts& now, const cuda::RuntimeCounts& before) {
  EXPECT_EQ(now.device_allocations, before.device_allocations);
  EXPECT_EQ(now.device_frees, before.device_frees);
  EXPECT_EQ(now.pinned_allocations, before.pinned_allocations);
  EXPECT_EQ(now.pinned_frees, before.pinned_frees);
  EXPECT_EQ(now.device_synchronizations, before.device_synchronizations);
  EXPECT_EQ(now.streams, before.streams);
  EXPECT_EQ(now.events, before.events);
}

// Each of these calls may make all work of the device wait. The payloads are in the engine's
// memory, like those of the file system. For other payloads a slot keeps a copy, whose memory grows
// to the largest batch.
TEST_F(CudaEngine, allocates_nothing_in_the_steady_state) {
  Maker maker(*cpu_, random_);
  std::vector<std::vector<Item>> lists(5);
  std::vector<std::unique_ptr<Built>> on_cuda;
  std::vector<std::unique_ptr<Built>> on_cpu;
  for (auto& items : lists) {
    for (std::size_t i = 0; i < std::max<std::size_t>(200 / test_part(), 4); ++i)
      items.push_back(maker.make());
    on_cuda.push_back(std::make_unique<Built>(items, cuda_.get(), random_));
    on_cpu.push_back(std::make_unique<Built>(items, nullptr, random_));
    cuda_->run(on_cuda.back()->get());
    cpu_->run(on_cpu.back()->get());
  }
  const cuda::RuntimeCounts before = cuda::runtime_counts();
  EXPECT_GT(before.device_allocations, 0u);
  EXPECT_GT(before.streams, 0u);
  EXPECT_GT(before.events, 0u);
  const std::uint64_t messages_before = cuda_->stats().cuda_message_count;
  for (std::size_t i = 0; i < 50; ++i) {
    Payload& payload = on_cuda[i % lists.size()]->get();
    if (i % 2 == 0) {
      cuda_->run(payload);
      continue;
    }
    std::latch ended(1);
    cuda_->submit(payload, [&] { ended.count_down(); });
    ended.wait();
  }
  expect_equal(cuda::runtime_counts(), before);
  EXPECT_GT(cuda_->stats().cuda_message_count, messages_before);
  EXPECT_EQ(cuda_->stats().cuda_failed_batch_count, 0u);
  for (std::size_t i = 0; i < lists.size(); ++i)
    expect_same(lists[i], *on_cuda[i], *on_cpu[i], *cpu_, random_);
  // Makes sure that the counters work.
  { const Arena arena = cuda_->allocate(1u << 20).value(); }
  EXPECT_EQ(cuda::runtime_counts().pinned_allocations, before.pinned_allocations + 1);
  EXPECT_EQ(cuda::runtime_counts().pinned_frees, before.pinned_frees + 1);
}

// Between batches, whose results stay right.
TEST_F(CudaEngine, forgets_keys_beside_payloads) {
  Maker maker(*cpu_, random_);
  std::vector<Item> items;
  for (std::size_t i = 0; i < std::max<std::size_t>(400 / test_part(), 4); ++i)
    items.push_back(maker.make());
  std::atomic<bool> done = false;
  std::thread forgetter([&] {
    while (!done)
      forget_keys(*cuda_);
  });
  for (int round = 0; round < 10; ++round) {
    Built built(items, nullptr, random_);
    Built on_cpu(items, nullptr, random_);
    cuda_->run(built.get());
    cpu_->run(on_cpu.get());
    expect_same(items, built, on_cpu, *cpu_, random_);
  }
  done = true;
  forgetter.join();
}

}  // namespace
}  // namespace nacre::engine
