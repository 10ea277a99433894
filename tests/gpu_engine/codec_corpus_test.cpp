// SPDX-License-Identifier: Apache-2.0
// How small the codecs make real files, in chunks of 64 KiB: the bounds that docs/PERFORMANCE.md
// gives. Skipped if the corpus does not lie next to the checkout.
#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <queue>
#include <string>

#include "gpu_engine/codec/codec.h"
#include "tests/gpu_engine/corpus.h"

namespace nacre::engine {
namespace {

constexpr std::size_t corpus_chunk_size = 65536;
constexpr std::size_t stride = 8;

class CodecCorpus : public testing::Test {
 protected:
  void SetUp() override {
    corpus_ = read_corpus(stride, testing::UnitTest::GetInstance()->current_test_info()->name());
    if (corpus_.empty()) GTEST_SKIP();
  }

  template <typename Size>
  static std::size_t sum(const CorpusFile& file, const Size& size_of) {
    std::size_t total = 0;
    for (std::size_t at = 0; at < file.bytes.size(); at += corpus_chunk_size)
      total += size_of(
          ByteView(file.bytes).subspan(at, std::min(corpus_chunk_size, file.bytes.size() - at)));
    return total;
  }
  template <typename Size>
  double ratio(const Size& size_of) const {
    double plain = 0;
    double stored = 0;
    for (const CorpusFile& file : corpus_) {
      plain += static_cast<double>(file.bytes.size());
      stored += static_cast<double>(sum(file, size_of));
    }
    return plain / stored;
  }
  static std::size_t size_under(Codec codec, int level, ByteView plain) {
    Bytes stream(stream_size_bound(codec, plain.size()));
    return std::min(compress(codec, level, plain, stream).value(), plain.size());
  }
  double ratio_of(Codec codec, int level) const {
    return ratio([&](ByteView plain) { return size_under(codec, level, plain); });
  }

  std::vector<CorpusFile> corpus_;
};

TEST_F(CodecCorpus, lz77_packs_better_than_liblz4) {
  const double theirs = ratio([](ByteView plain) {
    Bytes out(static_cast<std::size_t>(LZ4_COMPRESSBOUND(corpus_chunk_size)));
    return static_cast<std::size_t>(LZ4_compress_default(
        reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(out.data()),
        static_cast<int>(plain.size()), static_cast<int>(out.size())));
  });
  EXPECT_GE(ratio_of(Codec::lz77, 0), theirs);
}

// The thorough levels are liblz4's own blocks, each with its word of four bytes.
TEST_F(CodecCorpus, lz77_packs_as_well_as_liblz4_at_its_best) {
  const double theirs = ratio([](ByteView plain) {
    Bytes out(static_cast<std::size_t>(LZ4_COMPRESSBOUND(corpus_chunk_size)));
    const int size = LZ4_compress_HC(
        reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(out.data()),
        static_cast<int>(plain.size()), static_cast<int>(out.size()), LZ4HC_CLEVEL_MAX);
    return std::min(static_cast<std::size_t>(size), plain.size());
  });
  const double ours = ratio_of(Codec::lz77, 9);
  RecordProperty("ratios", std::to_string(ours) + ", liblz4's " + std::to_string(theirs));
  EXPECT_GE(ours, 0.999 * theirs);
}

TEST_F(CodecCorpus, gdeflate_and_lzw_pack_as_they_should) {
  EXPECT_GE(ratio_of(Codec::gdeflate, 1), 3.4);
  EXPECT_GE(ratio_of(Codec::gdeflate, 6), 3.75);
  EXPECT_GE(ratio_of(Codec::gdeflate, 9), 3.9);
  EXPECT_GE(ratio_of(Codec::lzw, 0), 2.2);
}

std::array<std::size_t, 256> count_bytes(ByteView plain) {
  std::array<std::size_t, 256> counts = {};
  for (const Byte byte : plain)
    ++counts[byte];
  return counts;
}

double entropy_bytes(ByteView plain) {
  double bits = 0;
  for (const std::size_t count : count_bytes(plain)) {
    if (count > 0)
      bits += static_cast<double>(count) *
              std::log2(static_cast<double>(plain.size()) / static_cast<double>(count));
  }
  return bits / 8;
}

// The size of the bytes under the best code of whole bits (Huffman 1952), without its description:
// the sum of all inner nodes of the tree.
double whole_bit_bytes(ByteView plain) {
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> nodes;
  for (const std::size_t count : count_bytes(plain))
    if (count > 0) nodes.push(count);
  std::size_t bits = nodes.size() == 1 ? plain.size() : 0;
  while (nodes.size() > 1) {
    std::size_t node = nodes.top();
    nodes.pop();
    node += nodes.top();
    nodes.pop();
    nodes.push(node);
    bits += node;
  }
  return static_cast<double>(bits) / 8;
}

// The excess over the order-0 entropy of each 64 KiB, tables included. No encoder of this format
// can avoid two parts of it: codes have whole bits, and about 190 bytes in the last words of a page
// are not used.
TEST_F(CodecCorpus, huffman_comes_near_the_entropy_over_the_corpus) {
  corpus_ = read_corpus(1, "huffman");  // a sample would stand a little too far from the whole
  std::vector<double> excess;
  double stored_sum = 0;
  double entropy_sum = 0;
  for (const CorpusFile& file : corpus_) {
    sum(file, [&](ByteView plain) {
      const auto stored = static_cast<double>(size_under(Codec::huffman, 0, plain));
      const double entropy = entropy_bytes(plain);
      stored_sum += stored;
      entropy_sum += entropy;
      if (plain.size() == corpus_chunk_size) {
        excess.push_back(stored / entropy - 1);
        EXPECT_LE(stored, whole_bit_bytes(plain) + 340) << file.name;
      }
      return std::size_t{0};
    });
  }
  EXPECT_GT(excess.size(), 1200u);
  std::sort(excess.begin(), excess.end());
  EXPECT_LE(stored_sum / entropy_sum - 1, 0.011);
  EXPECT_LE(excess[excess.size() / 2], 0.015);
  EXPECT_LE(excess[excess.size() * 99 / 100], 0.032);
  EXPECT_LE(excess.back(), 0.042);
}

// Compares auto with the best codec for each file at the same level. The thorough levels are slow,
// so they get fewer chunks.
class AutoOverCorpus : public CodecCorpus, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    corpus_ = read_corpus(GetParam() < 8 ? stride : 4 * stride, "auto");
    if (corpus_.empty()) GTEST_SKIP();
  }
};

TEST_P(AutoOverCorpus, is_within_three_hundredths_of_the_best) {
  const int level = GetParam();
  for (const CorpusFile& file : corpus_) {
    std::size_t best = file.bytes.size();
    for (const Codec codec :
         {Codec::lz77, Codec::zstd, Codec::rle, Codec::huffman, Codec::gdeflate, Codec::lzw})
      best = std::min(best,
                      sum(file, [&](ByteView plain) { return size_under(codec, level, plain); }));
    const std::size_t chosen = sum(file, [&](ByteView plain) {
      const CodecChoice choice = choose_codec(Codec::automatic, level, plain);
      return size_under(choice.codec, choice.level, plain);
    });
    EXPECT_LE(static_cast<double>(chosen), 1.03 * static_cast<double>(best)) << file.name;
  }
}
INSTANTIATE_TEST_SUITE_P(Levels, AutoOverCorpus, testing::Range(1, codec_level_max + 1));

}  // namespace
}  // namespace nacre::engine
