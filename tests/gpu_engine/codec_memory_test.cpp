// SPDX-License-Identifier: Apache-2.0
// What codecs keep for a thread: pages that no core dump has, given back when the thread ends.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "gpu_engine/codec/codec.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

// Bytes of this process that are mapped and left out of core dumps.
std::size_t undumped_size() {
  std::ifstream maps("/proc/self/smaps");
  std::size_t sum = 0;
  std::size_t size_kib = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    if (name == "Size:") fields >> size_kib;
    if (name != "VmFlags:") continue;
    for (std::string flag; fields >> flag;) {
      if (flag == "dd") sum += size_kib << 10;
    }
  }
  return sum;
}

struct Kept {
  Codec codec;
  int level;
  std::size_t encoding;  // at least, in bytes
  std::size_t decoding;
};

// A new thread has no tables yet, so all that it keeps is seen to come.
TEST(CodecMemory, of_a_thread_is_left_out_of_dumps_and_goes_with_it) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::puts("skipped: memory left out of dumps: sanitizers leave memory of their own out too");
  GTEST_SKIP();
#endif
  TestRandom random;
  const Bytes plain = make_data(DataKind::text, 65536, random);
  Bytes stream(stream_size_bound(Codec::automatic, plain.size()));
  Bytes decoded(plain.size());
  for (const Kept& kept : {Kept{Codec::zstd, 3, 100000, 60000}, Kept{Codec::lzw, 0, 300000, 20000},
                           Kept{Codec::gdeflate, 6, 300000, 30000}}) {
    const std::size_t before = undumped_size();
    std::size_t size = 0;
    std::thread([&] {
      size = compress(kept.codec, kept.level, plain, stream).value();
      EXPECT_GE(undumped_size(), before + kept.encoding) << to_string(kept.codec);
    }).join();
    EXPECT_EQ(undumped_size(), before) << to_string(kept.codec);
    std::thread([&] {
      EXPECT_TRUE(decompress(kept.codec, ByteView(stream).first(size), decoded).has_value());
      EXPECT_GE(undumped_size(), before + kept.decoding) << to_string(kept.codec);
    }).join();
    EXPECT_EQ(undumped_size(), before) << to_string(kept.codec);
    EXPECT_TRUE(decoded == plain);
  }
}

}  // namespace
}  // namespace nacre::engine
