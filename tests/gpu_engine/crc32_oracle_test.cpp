// SPDX-License-Identifier: Apache-2.0
// CRC-32 against zlib: one-shot, incremental and combine.
#include <gtest/gtest.h>
#include <zlib.h>

#include "gpu_engine/checksum/crc32.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

TEST(Crc32Oracle, zlib_agrees) {
  TestRandom random;
  const Bytes data = random.bytes(300000);
  for (int round = 0; round < 500; ++round) {
    const std::size_t size = random.below(data.size());
    const auto start = static_cast<std::uint32_t>(random.next());
    ASSERT_EQ(crc32(start, ByteView(data).first(size)), ::crc32_z(start, data.data(), size));
  }
}

TEST(Crc32Oracle, zlib_combines_to_the_same) {
  TestRandom random;
  for (int round = 0; round < 2000; ++round) {
    const auto first = static_cast<std::uint32_t>(random.next());
    const auto second = static_cast<std::uint32_t>(random.next());
    const std::uint64_t size = random.next() >> (2 + random.below(62));
    ASSERT_EQ(crc32_combine(first, second, size),
              ::crc32_combine(first, second, static_cast<z_off_t>(size)))
        << size;
  }
}

}  // namespace
}  // namespace nacre::engine
