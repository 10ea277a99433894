// SPDX-License-Identifier: Apache-2.0
// The device's zstd decoder, its very code, run on the host (device_emulator.h), with libzstd as
// the judge. cuda_zstd_test.cpp runs the same on a device.
#include "tests/gpu_engine/device_emulator.h"

#include <gtest/gtest.h>

#include <iostream>

#if NACRE_EMULATES_DEVICES

#include <cstdlib>

#include "gpu_engine/cuda/kernels/zstd_decoder.cuh"
#include "tests/gpu_engine/corpus.h"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/zstd_frames.h"

namespace nacre::engine {
namespace {

namespace zstd = cuda::zstd;

// NACRE_ZSTD_FRAMES: how many frames a test of many takes.
std::size_t frame_count(std::size_t otherwise) {
  const char* const text = std::getenv("NACRE_ZSTD_FRAMES");
  return text == nullptr ? otherwise : static_cast<std::size_t>(std::atoll(text));
}

class ZstdKernels : public testing::Test {
 protected:
  // Returns the content if the decoder accepts the frame. An access past the end of the frame or of
  // its content is a fault. The bytes before the content must stay as they are.
  std::optional<Bytes> decode(const ZstdFrame& frame) {
    const MutableByteView in = in_.last(frame.code.size());
    std::copy(frame.code.begin(), frame.code.end(), in.begin());
    const std::size_t room = std::min<std::size_t>(frame.plain_size, zstd::plain_size_max);
    const MutableByteView band = out_.last(room + band_size);
    std::fill_n(band.begin(), band_size, Byte{0xa5});
    const MutableByteView out = band.last(room);
    std::fill(out.begin(), out.end(), static_cast<Byte>(random_.next()));
    const cuda::CodecTask task = {.in = in.data(),
                                  .out = out.data(),
                                  .in_size = static_cast<std::uint32_t>(in.size()),
                                  .out_size = static_cast<std::uint32_t>(frame.plain_size)};
    // The memory is as another frame has left it.
    std::array<bool, cuda::lane_count> valid = {};
    DeviceEmulator::get().run(cuda::lane_count,
                              [&] { valid[threadIdx.x] = zstd::decode_frame(*memory_, task); });
    EXPECT_EQ(std::count(band.begin(), band.begin() + band_size, Byte{0xa5}), band_size);
    for (const bool lane_valid : valid)
      EXPECT_EQ(lane_valid, valid[0]);
    if (!valid[0]) return std::nullopt;
    return Bytes(out.begin(), out.end());
  }

  static constexpr std::ptrdiff_t band_size = 64;
  TestRandom random_;
  GuardedMemory in_{2u << 20};
  GuardedMemory out_{(1u << 20) + band_size};
  std::unique_ptr<zstd::FrameMemory> memory_ = std::make_unique<zstd::FrameMemory>();
};

Bytes corpus_bytes() {
  Bytes bytes;
  for (const CorpusFile& file : read_corpus(16, "zstd kernels"))
    bytes.insert(bytes.end(), file.bytes.begin(), file.bytes.end());
  return bytes;
}

TEST_F(ZstdKernels, know_lengths) {
  std::uint32_t end = 0;
  for (std::uint32_t code = 0; code <= zstd::literal_length_shape.symbol_max; ++code) {
    EXPECT_EQ(zstd::literal_length(code).base, end);
    end += 1u << zstd::literal_length(code).extra_bits;
  }
  EXPECT_EQ(end, 0x20000u);
  end = 3;
  for (std::uint32_t code = 0; code <= zstd::match_length_shape.symbol_max; ++code) {
    EXPECT_EQ(zstd::match_length(code).base, end);
    end += 1u << zstd::match_length(code).extra_bits;
  }
  EXPECT_EQ(end, 0x20003u);
}

TEST_F(ZstdKernels, decode_what_libzstd_makes) {
  const Bytes corpus = corpus_bytes();
  ZstdFrames frames(random_, corpus);
  const std::size_t count = frame_count(1000);
  std::size_t plain_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ZstdFrame frame = frames.make(i % 500 == 0  ? zstd::plain_size_max
                                        : i % 20 == 0 ? 1u << 17
                                                      : 6000);
    plain_bytes += frame.plain_size;
    const std::optional<Bytes> expected = judge_zstd_frame(frame);
    ASSERT_TRUE(expected.has_value());
    const std::optional<Bytes> decoded = decode(frame);
    ASSERT_TRUE(decoded.has_value()) << "frame " << i << " of " << frame.plain_size;
    ASSERT_TRUE(*decoded == *expected) << "frame " << i << " of " << frame.plain_size;
  }
  std::cout << count << " frames, " << plain_bytes << " bytes\n";
}

TEST_F(ZstdKernels, decode_every_level_and_edge_size) {
  for (const std::size_t size : edge_sizes) {
    if (size == 0) continue;
    for (const DataKind kind : data_kinds) {
      const Bytes content = make_data(kind, size, random_);
      for (const int level : {-5, 1, 19}) {
        if (size > 70000 && level != 1 + static_cast<int>(kind) % 2 * 18) continue;
        const std::optional<Bytes> decoded = decode(ZstdFrames::at_level(content, level));
        ASSERT_TRUE(decoded.has_value() && *decoded == content) << size << " at level " << level;
      }
    }
  }
}

// The device may refuse more frames than libzstd, since the cpu then decodes them. It must not
// accept more.
TEST_F(ZstdKernels, take_no_frame_that_libzstd_refuses) {
  const Bytes corpus = corpus_bytes();
  ZstdFrames frames(random_, corpus);
  const std::size_t count = frame_count(3000);
  std::size_t refused = 0;
  std::size_t refused_here_alone = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const ZstdFrame frame = frames.damage(frames.make(i % 50 == 0 ? 1u << 17 : 5000));
    const std::optional<Bytes> expected = judge_zstd_frame(frame);
    const std::optional<Bytes> decoded = decode(frame);
    refused += !decoded;
    refused_here_alone += expected && !decoded;
    if (!decoded) continue;
    ASSERT_TRUE(expected.has_value()) << "frame " << i;
    ASSERT_TRUE(*decoded == *expected) << "frame " << i;
  }
  std::cout << count << " damaged frames: " << refused << " refused, of which libzstd takes "
            << refused_here_alone << "\n";
  EXPECT_GT(refused, count / 2) << "the damage must reach the decoder's checks";
  EXPECT_LT(refused_here_alone, count / 50);
}

// A frame of 80 bytes whose sequences' bit stream has bytes in front of it that nothing reads.
TEST_F(ZstdKernels, refuse_bits_that_are_left) {
  Bytes content;
  for (int i = 0; i < 20; ++i)
    content.insert(content.end(), {'a', 'b', 'c', 'd'});
  const ZstdFrame frame = ZstdFrames::at_level(content, 1);
  ASSERT_EQ(decode(frame), content);
  // The frame's header has 6 bytes and the block's 3; then come raw literals, whose header is one
  // byte, the count of sequences, the modes of the tables and a byte for each table of one symbol.
  constexpr std::size_t block_at = 6;
  const Byte literals = frame.code[block_at + 3];
  ASSERT_EQ(literals & 7, 0);
  const std::size_t modes_at = block_at + 5 + (literals >> 3);
  std::size_t stream_at = modes_at + 1;
  for (const int shift : {2, 4, 6}) {
    const int mode = frame.code[modes_at] >> shift & 3;
    ASSERT_LE(mode, 1);
    stream_at += static_cast<std::size_t>(mode);
  }
  for (std::size_t more = 1; more <= 12; ++more) {
    ZstdFrame longer = frame;
    longer.code.insert(longer.code.begin() + static_cast<std::ptrdiff_t>(stream_at), more, Byte{0});
    longer.code[block_at] = static_cast<Byte>(longer.code[block_at] + 8 * more);
    EXPECT_FALSE(decode(longer).has_value()) << more;
    // libzstd reads states that no sequence follows, of up to 26 bits.
    if (more >= 9) {
      EXPECT_FALSE(judge_zstd_frame(longer).has_value()) << more;
    }
  }
}

}  // namespace
}  // namespace nacre::engine

#else

TEST(ZstdKernels, are_emulated) {
  std::cout << "skipped: zstd kernels: the emulation needs an x86-64 processor\n";
  GTEST_SKIP() << "no emulation on this processor";
}

#endif
