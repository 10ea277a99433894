// SPDX-License-Identifier: Apache-2.0
// A warp of the device's LZ4 encoder, its very code, run on the host (device_emulator.h), with
// liblz4 as the judge. cuda_lz4_test.cpp runs whole blocks of it on a device.
#include "tests/gpu_engine/device_emulator.h"

#include <gtest/gtest.h>

#include <iostream>

#if NACRE_EMULATES_DEVICES

#include <lz4.h>

#include "gpu_engine/cuda/kernels/lz4_encoder.cuh"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

constexpr std::uint32_t entry_count = 3072;

// The sequences of plain[from …), with the memory behind the input and the room for them a fault.
cuda::lz4::Part encode(ByteView plain, std::uint32_t from, MutableByteView room) {
  GuardedMemory input(plain.size() + 4);
  const MutableByteView in = input.last(round_up(plain.size(), 4)).first(plain.size());
  std::copy(plain.begin(), plain.end(), in.begin());
  std::vector<std::uint32_t> table(entry_count / 2);
  cuda::lz4::Part part = {};
  DeviceEmulator::get().run(cuda::lane_count, [&] {
    cuda::lz4::Encoder<entry_count> encoder(in.data(), from, static_cast<std::uint32_t>(in.size()),
                                            room.data(), static_cast<std::uint32_t>(room.size()),
                                            table.data());
    if (from != 0) encoder.learn_history();
    const cuda::lz4::Part mine = encoder.run();
    if (threadIdx.x == 0) part = mine;
  });
  return part;
}

void append_literals(Bytes& block, ByteView literals) {
  block.push_back(static_cast<Byte>(std::min<std::size_t>(literals.size(), 15) << 4));
  if (literals.size() >= 15) {
    std::size_t rest = literals.size() - 15;
    for (; rest >= 255; rest -= 255)
      block.push_back(255);
    block.push_back(static_cast<Byte>(rest));
  }
  block.insert(block.end(), literals.begin(), literals.end());
}

TEST(Lz4Kernels, write_sequences_that_liblz4_reads) {
  TestRandom random;
  std::size_t coded = 0;
  for (const std::size_t size : {13, 31, 32, 33, 64, 500, 4096, 8191, 20000, 65535, 65536}) {
    for (const DataKind kind : data_kinds) {
      SCOPED_TRACE(testing::Message() << size << " bytes");
      const Bytes plain = make_data(kind, size, random);
      // Codes the bytes as the first part of a piece, and as a later part, whose matches reach back
      // into the first.
      for (const std::size_t from : {std::size_t{0}, size / 2}) {
        if (from != 0 && from < cuda::found_size_min) continue;
        GuardedMemory memory(size + size / 255 + 32);
        const MutableByteView room = memory.last(size + size / 255 + 32);
        const cuda::lz4::Part part = encode(plain, static_cast<std::uint32_t>(from), room);
        ASSERT_TRUE(part.fits);
        if (part.size == 0) continue;
        ++coded;
        Bytes block(room.begin(), room.begin() + part.size);
        append_literals(block, ByteView(plain).subspan(part.literals_from));
        Bytes decoded(plain);
        std::fill(decoded.begin() + static_cast<std::ptrdiff_t>(from), decoded.end(), Byte{0xee});
        const int decoded_size = LZ4_decompress_safe_usingDict(
            reinterpret_cast<const char*>(block.data()),
            reinterpret_cast<char*>(decoded.data() + from), static_cast<int>(block.size()),
            static_cast<int>(size - from), reinterpret_cast<const char*>(decoded.data()),
            static_cast<int>(from));
        ASSERT_EQ(decoded_size, static_cast<int>(size - from));
        ASSERT_EQ(decoded, plain);
      }
    }
  }
  EXPECT_GT(coded, 30u);
}

TEST(Lz4Kernels, say_where_their_sequences_do_not_fit) {
  TestRandom random;
  const Bytes plain = make_data(DataKind::text, 65536, random);
  Bytes whole(70000);
  const cuda::lz4::Part part = encode(plain, 0, whole);
  ASSERT_TRUE(part.fits);
  // It is a matter of chance which lanes enter their positions. So the next run may need one byte
  // less.
  for (const std::size_t room : {std::size_t{0}, std::size_t{part.size / 2}}) {
    GuardedMemory memory(room + 1);
    EXPECT_FALSE(encode(plain, 0, memory.last(room)).fits) << room;
  }
}

}  // namespace
}  // namespace nacre::engine

#else

TEST(Lz4Kernels, are_emulated) {
  std::cout << "skipped: LZ4 kernels: the emulation needs an x86-64 processor\n";
  GTEST_SKIP() << "no emulation on this processor";
}

#endif
