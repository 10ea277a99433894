// SPDX-License-Identifier: Apache-2.0
// The device's code for the sample, run on the host (device_emulator.h) and compared with the
// cpu's.
#include "tests/gpu_engine/device_emulator.h"

#include <gtest/gtest.h>

#if NACRE_EMULATES_DEVICES

#include "gpu_engine/codec/sample.h"
#include "gpu_engine/cuda/kernels/sample.cuh"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

// The verdict of all threads. Reading a byte past the end of plain is a fault.
bool sample(ByteView plain) {
  static cuda::SampleMemory memory;
  std::fill_n(reinterpret_cast<Byte*>(&memory), sizeof memory, 0xee);
  GuardedMemory input(plain.size() + 1);
  const MutableByteView in = input.last(plain.size());
  std::copy(plain.begin(), plain.end(), in.begin());
  std::vector<int> verdicts(cuda::sample_threads);
  DeviceEmulator::get().run(cuda::sample_threads, [&] {
    verdicts[threadIdx.x] =
        cuda::looks_compressible(in.data(), static_cast<std::uint32_t>(in.size()), memory);
  });
  for (const int verdict : verdicts)
    EXPECT_EQ(verdict, verdicts[0]) << "threads disagree";
  return verdicts[0] != 0;
}

TEST(SampleKernels, say_what_the_cpu_says_of_data_of_all_kinds_and_sizes) {
  TestRandom random;
  for (const std::size_t size : {0u, 1u, 100u, 4095u, 4096u, 4097u, 10000u, 65535u, 65536u, 65537u,
                                 69631u, 69632u, 131072u, 200000u}) {
    for (const DataKind kind : data_kinds) {
      const Bytes plain = make_data(kind, size, random);
      EXPECT_EQ(sample(plain), looks_compressible(plain)) << size << " bytes";
    }
  }
}

TEST(SampleKernels, say_what_the_cpu_says_where_it_is_a_close_thing) {
  TestRandom random;
  int compressible = 0;
  for (int round = 0; round < 200; ++round) {
    // Noise with up to a twentieth of one byte: half of that tells.
    Bytes plain = random.bytes(4096 + random.below(61441));
    const std::size_t frequent = plain.size() * random.below(50) / 1000;
    for (std::size_t i = 0; i < frequent; ++i)
      plain[random.below(plain.size())] = 'e';
    const bool expected = looks_compressible(plain);
    EXPECT_EQ(sample(plain), expected) << plain.size() << " bytes, " << frequent;
    compressible += expected;
  }
  EXPECT_GT(compressible, 40);
  EXPECT_LT(compressible, 160);
}

TEST(SampleKernels, see_noise_that_repeats_as_the_cpu_does) {
  TestRandom random;
  int seen = 0;
  for (int round = 0; round < 200; ++round) {
    Bytes plain = random.bytes(4096 + random.below(61441));
    // A stretch that occurs twice is seen where it lies well.
    const std::size_t length = 60 + random.below(4000);
    if (plain.size() > 2 * length) {
      const std::size_t from = random.below(plain.size() - length);
      const std::size_t to = random.below(plain.size() - length);
      std::copy_n(Bytes(plain).begin() + static_cast<std::ptrdiff_t>(from), length,
                  plain.begin() + static_cast<std::ptrdiff_t>(to));
    }
    const bool expected = looks_compressible(plain);
    EXPECT_EQ(sample(plain), expected);
    seen += expected;
  }
  EXPECT_GT(seen, 20);
  EXPECT_LT(seen, 180);
}

}  // namespace
}  // namespace nacre::engine

#endif
