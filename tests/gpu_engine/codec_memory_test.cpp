// SPDX-License-Identifier: Apache-2.0
// The memory that codecs keep for each thread: core dumps leave it out, and it is freed when the
// thread ends. Also what codecs do if they get no memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <thread>

#include "gpu_engine/codec/codec.h"
#include "gpu_engine/cpu/run_message.h"
#include "tests/gpu_engine/allocation_faults.h"
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

// A new thread has no tables yet, so the test sees all memory that the thread takes.
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

// While it exists, the process gets no more pages, and the thread gets nothing from operator new.
// Memory that malloc() already has can still be used: the C library ends a process that has no
// memory for registering the destructors of a thread.
class NoMemory {
 public:
  NoMemory() : faults_(0) {
    void* volatile first = std::malloc(1000);  // the thread's heap
    std::free(first);
    getrlimit(RLIMIT_AS, &before_);
    const rlimit none = {.rlim_cur = 1, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_AS, &none);
  }
  ~NoMemory() { setrlimit(RLIMIT_AS, &before_); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  AllocationFaults faults_;
  rlimit before_ = {};
};

class CodecWithoutMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    std::puts("skipped: codecs without memory: sanitizers need pages of their own");
    GTEST_SKIP();
#endif
  }

  Bytes stream_of(const CodecChoice& choice, ByteView plain) {
    Bytes stream(stream_size_bound(choice.codec, plain.size()));
    stream.resize(compress(choice.codec, choice.level, plain, stream).value());
    return stream;
  }

  TestRandom random_;
};

bool all_zeros(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](Byte byte) { return byte == 0; });
}

TEST_F(CodecWithoutMemory, encodes_as_ever_once_there_is_memory_again) {
  const Bytes plain = make_data(DataKind::text, 65536, random_);
  for (const CodecChoice& choice :
       {CodecChoice{Codec::zstd, 3}, CodecChoice{Codec::lz77, 9}, CodecChoice{Codec::gdeflate, 6},
        CodecChoice{Codec::huffman, 0}, CodecChoice{Codec::lzw, 0}}) {
    Bytes out(stream_size_bound(choice.codec, plain.size()));
    const auto encode = [&] { return compress_to_fit(choice.codec, choice.level, plain, out); };
    std::optional<std::size_t> without;
    std::optional<std::size_t> with;
    std::thread([&] {
      {
        const NoMemory none;
        without = encode();
      }
      with = encode();
    }).join();
    EXPECT_TRUE(!without || *without > plain.size()) << to_string(choice.codec);
    ASSERT_TRUE(with) << to_string(choice.codec);
    EXPECT_TRUE(ByteView(out).first(*with).size() < plain.size()) << to_string(choice.codec);
    out.resize(*with);
    EXPECT_TRUE(out == stream_of(choice, plain)) << to_string(choice.codec);
  }
}

// The first sub-block needs no tables: it is stored as it is.
TEST_F(CodecWithoutMemory, gives_no_verdict_on_a_stream_and_leaves_nothing_of_it) {
  Bytes plain = make_data(DataKind::random, 65536, random_);
  const Bytes text = make_data(DataKind::text, 65536, random_);
  plain.insert(plain.end(), text.begin(), text.end());
  for (const Codec codec : {Codec::zstd, Codec::gdeflate, Codec::huffman, Codec::lzw}) {
    const Bytes stream = stream_of({codec, 0}, plain);
    Bytes out(plain.size(), 0xee);
    Payload payload;
    payload.input = stream.data();
    payload.input_size = stream.size();
    payload.output = out.data();
    payload.output_size = out.size();
    payload.messages.push_back({.operation = Operation::decompress,
                                .codec = codec,
                                .input_size = stream.size(),
                                .output_capacity = out.size()});
    MessageResult without;
    bool is_left = true;
    MessageResult with;
    std::thread([&] {
      {
        const NoMemory none;
        without = run_message(payload, {}, 0);
      }
      is_left = !all_zeros(out);
      with = run_message(payload, {}, 0);
    }).join();
    EXPECT_FALSE(without.ok) << to_string(codec);
    EXPECT_EQ(without.error, ErrorCode::out_of_memory) << to_string(codec);
    EXPECT_FALSE(is_left) << to_string(codec);
    EXPECT_TRUE(with.ok && out == plain) << to_string(codec);
  }
}

}  // namespace
}  // namespace nacre::engine
