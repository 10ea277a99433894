// SPDX-License-Identifier: Apache-2.0
// The device's encoders of GDeflate pages, their very code, run on the host (device_emulator.h): so
// they are tested where there is no device. cuda_gdeflate_encode_test.cpp runs them on one.
#include "tests/gpu_engine/device_emulator.h"

#include <gtest/gtest.h>

#include <iostream>

#if NACRE_EMULATES_DEVICES

#include "gpu_engine/codec/gdeflate/decoder.h"
#include "gpu_engine/codec/gdeflate/encoder.h"
#include "gpu_engine/cuda/kernels/gdeflate_encoder.cuh"
#include "gpu_engine/cuda/kernels/huffman_encoder.cuh"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

using cuda::gdeflate::LiteralEncoder;
using cuda::gdeflate::LiteralPage;
using ItemEncoder = cuda::gdeflate::PageEncoder;

constexpr std::size_t sizes[] = {1,    2,    31,   32,   33,   127,   128,   129,   130,   131,
                                 150,  200,  255,  257,  300,  511,   1023,  4095,  4096,  4097,
                                 8191, 8192, 8193, 8200, 8210, 20000, 32769, 65534, 65535, 65536};

// Shared memory as it is found: with something in it.
template <typename Page>
class SharedMemory {
 public:
  Page& dirty() {
    std::fill_n(reinterpret_cast<Byte*>(memory_.get()), sizeof(Page), 0xee);
    return *reinterpret_cast<Page*>(memory_.get());
  }

 private:
  std::unique_ptr<uint4[]> memory_{new uint4[(sizeof(Page) + sizeof(uint4) - 1) / sizeof(uint4)]};
};

// Runs code(task) in all threads, with input and output at the ends of their pages: one byte
// written behind them is a fault. Input ends there rounded up to a word, which a device may read.
template <typename Encode>
Bytes run(unsigned thread_count, ByteView plain, std::size_t room, Encode encode) {
  GuardedMemory input(plain.size() + 4);
  GuardedMemory output(room + 1);
  const MutableByteView in = input.last(round_up(plain.size(), 4)).first(plain.size());
  const MutableByteView out = output.last(room);
  std::copy(plain.begin(), plain.end(), in.begin());
  const cuda::CodecTask task = {in.data(), out.data(), static_cast<std::uint32_t>(plain.size()),
                                static_cast<std::uint32_t>(room)};
  std::vector<std::uint32_t> results(thread_count);
  DeviceEmulator::get().run(thread_count, [&] { results[threadIdx.x] = encode(task); });
  for (const std::uint32_t result : results)
    EXPECT_EQ(result, results[0]) << "threads disagree";
  EXPECT_LE(results[0], room);
  return Bytes(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(results[0]));
}

Bytes encode_literals(ByteView plain, std::size_t room) {
  static SharedMemory<LiteralPage> memory;
  LiteralPage& page = memory.dirty();
  return run(LiteralEncoder::thread_count, plain, room,
             [&](const cuda::CodecTask& task) { return LiteralEncoder(task, page).run(); });
}

Bytes encode_items(ByteView plain, std::size_t room) {
  static SharedMemory<ItemEncoder::Page> memory;
  static std::vector<uint4> workspace(ItemEncoder::workspace_size / sizeof(uint4));
  ItemEncoder::Page& page = memory.dirty();
  return run(ItemEncoder::thread_count, plain, room, [&](const cuda::CodecTask& task) {
    return ItemEncoder(task, page, reinterpret_cast<Byte*>(workspace.data())).run();
  });
}

Bytes encode_on_cpu(ByteView plain) {
  Bytes page(plain.size());
  page.resize(gdeflate::encode_page_of_literals(plain, page));
  return page;
}

// Few bytes of which each occurs as often as the two rarer ones together: the deepest tree.
Bytes make_fibonacci(std::size_t size, TestRandom& random) {
  Bytes made;
  std::size_t count = 1;
  std::size_t count_before = 1;
  for (Byte byte = 0; made.size() < size; ++byte) {
    made.insert(made.end(), std::min(count, size - made.size()), byte);
    count = std::exchange(count_before, count) + count_before;
  }
  for (std::size_t i = made.size(); i > 1; --i)
    std::swap(made[i - 1], made[random.below(i)]);
  return made;
}

// Quarters with alphabets of their own, which are worth blocks of their own.
Bytes make_quarters(std::size_t size, TestRandom& random) {
  Bytes made(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t quarter = i * 4 / size;
    made[i] = static_cast<Byte>(quarter * 60 + random.below(1 + (quarter % 3) * 20));
  }
  return made;
}

std::vector<Bytes> plain_pieces(std::size_t size, TestRandom& random) {
  std::vector<Bytes> pieces;
  for (const DataKind kind : data_kinds)
    pieces.push_back(make_data(kind, size, random));
  pieces.push_back(make_fibonacci(size, random));
  pieces.push_back(make_quarters(size, random));
  Bytes periodic = random.bytes(size);
  for (std::size_t i = 1 + random.below(size), period = i; i < size; ++i)
    periodic[i] = periodic[i - period];
  pieces.push_back(periodic);
  return pieces;
}

void expect_decoded(const Bytes& page, const Bytes& plain) {
  ASSERT_LT(page.size(), plain.size());
  for (const auto decode : {gdeflate::decode_page, gdeflate::decode_page_plainly}) {
    Bytes decoded(plain.size(), 0xee);
    ASSERT_TRUE(decode(page, decoded));
    ASSERT_EQ(decoded, plain);
  }
}

TEST(GdeflateKernels, write_the_cpus_pages_of_literals) {
  TestRandom random;
  std::size_t coded = 0;
  for (const std::size_t size : sizes) {
    for (const Bytes& plain : plain_pieces(size, random)) {
      const Bytes page = encode_literals(plain, size);
      ASSERT_EQ(page, encode_on_cpu(plain)) << size << " bytes";
      coded += !page.empty();
    }
  }
  EXPECT_GT(coded, std::size(sizes) * 2);
}

TEST(GdeflateKernels, write_pages_with_matches_that_the_cpu_reads) {
  TestRandom random;
  std::size_t coded = 0;
  for (const std::size_t size : sizes) {
    for (const Bytes& plain : plain_pieces(size, random)) {
      const Bytes page = encode_items(plain, size);
      if (page.empty()) continue;
      SCOPED_TRACE(testing::Message() << size << " bytes");
      expect_decoded(page, plain);
      if (HasFatalFailure()) return;
      ++coded;
    }
  }
  EXPECT_GT(coded, std::size(sizes) * 2);  // of seven kinds, by chance some 90 in all
}

TEST(GdeflateKernels, code_nearly_as_small_as_the_cpu) {
  TestRandom random;
  std::size_t size = 0;
  std::size_t cpu_size = 0;
  for (int i = 0; i < 12; ++i) {
    const Bytes plain = make_data(i % 2 == 0 ? DataKind::text : DataKind::mixed, 65536, random);
    Bytes by_cpu(plain.size());
    const std::size_t page_size = encode_items(plain, plain.size()).size();
    size += page_size != 0 ? page_size : plain.size();
    const std::size_t cpu_page_size = gdeflate::encode_page(1, plain, by_cpu);
    cpu_size += cpu_page_size != 0 ? cpu_page_size : plain.size();
  }
  EXPECT_LE(size * 95 / 100, cpu_size);
}

TEST(GdeflateKernels, give_nothing_for_what_does_not_fit) {
  TestRandom random;
  for (const auto encode : {encode_literals, encode_items}) {
    EXPECT_TRUE(encode(random.bytes(65536), 65536).empty());
    for (const std::size_t size : {600, 4097, 65536}) {
      const Bytes plain = make_data(DataKind::text, size, random);
      const Bytes whole = encode(plain, size);
      ASSERT_FALSE(whole.empty());
      // Matches may be others at another time, and the page a little larger: which of two threads'
      // positions a slot of the table keeps is chance, and on a loaded machine they are far apart.
      const Bytes tight = encode(plain, std::min(size, whole.size() * 9 / 8 + 16));
      ASSERT_FALSE(tight.empty());
      expect_decoded(tight, plain);
      for (const std::size_t room : {whole.size() / 2, std::size_t{1}, std::size_t{0}})
        EXPECT_TRUE(encode(plain, room).empty());
    }
  }
  // Pages of literals are always the same.
  const Bytes plain = make_data(DataKind::text, 30000, random);
  const Bytes page = encode_on_cpu(plain);
  EXPECT_EQ(encode_literals(plain, page.size()), page);
  EXPECT_TRUE(encode_literals(plain, page.size() - 1).empty());
}

}  // namespace
}  // namespace nacre::engine

#else

TEST(GdeflateKernels, are_emulated) {
  std::cout << "skipped: GDeflate kernels: the emulation needs an x86-64 processor\n";
  GTEST_SKIP() << "no emulation on this processor";
}

#endif
