// SPDX-License-Identifier: Apache-2.0
// Thousands of short messages, which go to devices unsorted: results and counts must be the cpu's,
// also if the sample missed some kinds of messages.
#include <cuda_runtime_api.h>

#include <latch>

#include "gpu_engine/cuda/runtime.h"
#include "gpu_engine/cuda/tuning.h"
#include "tests/gpu_engine/cuda_engine_fixture.h"
#include "tests/gpu_engine/cuda_test_device.h"

namespace nacre::engine {
namespace {

class CudaShortMessages : public CudaEngine {
 protected:
  static constexpr std::size_t count = alike_count_min + 1001;

  enum class Shape { crypt, seal_bytes, open_bytes, checksum, compress, decompress };
  static constexpr std::array shapes = {Shape::crypt,    Shape::seal_bytes, Shape::open_bytes,
                                        Shape::checksum, Shape::compress,   Shape::decompress};

  // Messages of one kind, of which each 40th is bad if that kind can be bad. Now and then a message
  // that the sample does not look at is of another kind.
  std::vector<Item> make(Shape shape) {
    std::vector<Item> items;
    const Bytes key = random_.bytes(32);
    for (std::size_t i = 0; i < count; ++i) {
      Item item;
      item.message.operation = Operation::checksum;
      item.input = make_data(DataKind::text, random_.below(500), random_);
      switch (shape) {
        case Shape::crypt:
          item.use = {.kind = KeyKind::block_cipher, .cipher = BlockCipher::aes_256};
          item.key = key;
          item.message.operation = Operation::encrypt;
          random_.fill(item.message.iv);
          item.message.output_capacity = item.input.size();
          break;
        case Shape::seal_bytes:
        case Shape::open_bytes:
          item.key = key;
          item.aad = random_.bytes(random_.below(30));
          item.message.operation = Operation::encrypt;
          item.message.output_capacity = item.input.size() + 16;
          break;
        case Shape::compress:
        case Shape::decompress:
          item.message.operation = Operation::compress;
          item.message.codec = Codec::rle;
          item.message.output_capacity = stream_size_bound(Codec::rle, item.input.size());
          break;
        default:
          break;
      }
      items.push_back(std::move(item));
    }
    if (shape == Shape::open_bytes || shape == Shape::decompress) reverse(items);
    Maker maker(*cpu_, random_);
    const std::size_t step = (count - 1) / (alike_sample_count - 1);
    for (std::size_t at = 70; at < count; at += 97) {
      if (at % step == 0 || at % step == step - 1 || at % step == 1) continue;
      items[at] = maker.make();
    }
    return items;
  }

  // Turns the items around: they become the operations that turn the cpu's outputs into the inputs
  // again.
  void reverse(std::vector<Item>& items) {
    Built forward(items, nullptr, random_);
    cpu_->run(forward.get());
    for (std::size_t i = 0; i < items.size(); ++i) {
      ASSERT_TRUE(forward.result(i).ok) << forward.result(i).detail;
      Item& item = items[i];
      item.message.output_capacity = item.input.size();
      item.input.assign(forward.output(i).begin(), forward.output(i).end());
      item.message.operation =
          item.message.operation == Operation::encrypt ? Operation::decrypt : Operation::decompress;
      if (i % 40 == 17 && !item.input.empty()) item.input[random_.below(item.input.size())] ^= 0x55;
    }
  }

  void run(Payload& payload, bool by_submit) {
    if (!by_submit) return cuda_->run(payload);
    std::latch ended(1);
    cuda_->submit(payload, [&] { ended.count_down(); });
    ended.wait();
  }
};

TEST_F(CudaShortMessages, have_the_cpus_results_and_counts) {
  for (const Shape shape : shapes) {
    const std::vector<Item> items = make(shape);
    if (HasFatalFailure()) return;
    for (const bool pinned : {true, false}) {
      for (const bool by_submit : {false, true}) {
        TestRandom layout;
        Built on_cuda(items, pinned ? cuda_.get() : nullptr, layout);
        Built on_cpu(items, nullptr, layout);
        const EngineStats before = cuda_->stats();
        const EngineStats cpu_before = cpu_->stats();
        run(on_cuda.get(), by_submit);
        cpu_->run(on_cpu.get());
        const EngineStats after = cuda_->stats();
        const EngineStats cpu_after = cpu_->stats();
        EXPECT_GT(after.cuda_message_count - before.cuda_message_count, count * 9 / 10);
        EXPECT_EQ(after.message_count - before.message_count, count);
        EXPECT_EQ(after.input_bytes - before.input_bytes,
                  cpu_after.input_bytes - cpu_before.input_bytes);
        std::uint64_t output_bytes = 0;
        std::uint64_t failed = 0;
        for (const MessageResult& result : on_cuda.get().results) {
          failed += !result.ok;
          output_bytes += result.output_size;
        }
        EXPECT_EQ(after.failed_message_count - before.failed_message_count, failed);
        EXPECT_EQ(after.output_bytes - before.output_bytes, output_bytes);
        expect_same(items, on_cuda, on_cpu, *cpu_, random_);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(CudaShortMessages, may_lie_where_their_outputs_do) {
  constexpr std::size_t size = 256;
  const Bytes key = random_.bytes(16);
  const Bytes plain = random_.bytes(size * count);
  for (const std::size_t spacing : {size, size + 64}) {
    const auto build = [&](Payload& payload, Byte* memory) {
      payload.input = payload.output = memory;
      payload.input_size = payload.output_size = spacing * count;
      const std::uint32_t ctr = payload.add_key(BlockCipher::aes_128, CipherMode::ctr, key);
      for (std::size_t i = 0; i < count; ++i) {
        std::copy_n(plain.begin() + static_cast<std::ptrdiff_t>(i * size), size,
                    memory + i * spacing);
        payload.messages.push_back({.operation = Operation::encrypt,
                                    .key_index = ctr,
                                    .input_offset = i * spacing,
                                    .input_size = size,
                                    .output_offset = i * spacing,
                                    .output_capacity = size});
      }
    };
    Bytes expected(spacing * count);
    Payload on_cpu;
    build(on_cpu, expected.data());
    cpu_->run(on_cpu);
    Arena memory = cuda_->allocate(spacing * count).value();
    Payload on_cuda;
    build(on_cuda, memory.data());
    cuda_->run(on_cuda);
    EXPECT_TRUE(std::ranges::equal(expected, ByteView(memory.data(), memory.size()))) << spacing;
  }
}

// Short enough for memcheck, which sees no other injected fault.
TEST_F(CudaShortMessages, lose_nothing_to_a_call_that_fails) {
  const std::vector<Item> items = make(Shape::decompress);
  Built on_cpu(items, nullptr, random_);
  cpu_->run(on_cpu.get());
  for (unsigned nth = 1; nth <= 40; nth += test_part() > 1 ? 9 : 3) {
    Built on_cuda(items, cuda_.get(), random_);
    cuda::inject_fault(cuda::Fault::launch_failure, nth);
    cuda_->run(on_cuda.get());
    cuda::inject_fault(cuda::Fault::none, 0);
    expect_same(items, on_cuda, on_cpu, *cpu_, random_);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace nacre::engine
