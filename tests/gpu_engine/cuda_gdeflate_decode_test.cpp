// SPDX-License-Identifier: Apache-2.0
// GDeflate pages on the device against the CPU's encoder and plain decoder.
#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/cuda/kernels/codecs.h"
#include "tests/gpu_engine/cuda_pieces.h"
#include "tests/gpu_engine/gdeflate_pages.h"

namespace nacre::engine::cuda {
namespace {

using nacre::engine::gdeflate::encode_to_page;
using nacre::engine::gdeflate::judge_page;
using nacre::engine::gdeflate::make_periodic;
using nacre::engine::gdeflate::make_skewed;
using nacre::engine::gdeflate::page_plain_size_max;
using nacre::engine::gdeflate::write_plain_blocks;

void decode_gdeflate(std::vector<DevicePiece>& pieces) {
  run_pieces(pieces, [](const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
    EXPECT_EQ(gdeflate_decode_workspace_size(count), 0u);
    return gdeflate_decode(tasks, count, results, nullptr, nullptr);
  });
}

// How pieces are handled depends on how many there are at once.
constexpr std::size_t gdeflate_counts_at_once[] = {std::size_t{1} << 20, 300};

void decode_gdeflate(std::vector<DevicePiece>& pieces, std::size_t at_once) {
  in_lots(pieces, at_once, [](std::vector<DevicePiece>& lot) { decode_gdeflate(lot); });
}

constexpr int level_count = 10;  // 0: literals alone

class CudaGdeflateDecode : public CudaTest {
 protected:
  // Bytes of one of the kinds. Sizes are from 1 byte to 64 KiB.
  Bytes make_plain(std::size_t kind, std::size_t size) {
    if (kind < data_kinds.size()) return make_data(data_kinds[kind], size, random_);
    if (kind == data_kinds.size()) return make_skewed(size, random_);
    return make_periodic(size, 1 + random_.below(300), random_);
  }
  static constexpr std::size_t kind_count = data_kinds.size() + 2;

  void expect_decodes(const std::vector<Bytes>& plains, const std::vector<Bytes>& pages) {
    for (const std::size_t at_once : gdeflate_counts_at_once) {
      std::vector<DevicePiece> pieces;
      for (std::size_t i = 0; i < plains.size(); ++i)
        pieces.push_back({.in = pages[i], .out_size = plains[i].size()});
      decode_gdeflate(pieces, at_once);
      for (std::size_t i = 0; i < plains.size(); ++i) {
        ASSERT_EQ(pieces[i].result, 1u) << "piece " << i << " of " << plains[i].size();
        ASSERT_EQ(pieces[i].out, plains[i]) << "piece " << i << " of " << plains[i].size();
      }
    }
  }

  TestRandom random_;
};

TEST_F(CudaGdeflateDecode, reads_the_pages_of_the_reference_codec) {
  std::vector<DevicePiece> pieces;
  const std::vector<GdeflateVector> vectors = read_gdeflate_vectors();
  for (const GdeflateVector& vector : vectors)
    pieces.push_back({.in = vector.page, .out_size = vector.plain_size});
  decode_gdeflate(pieces);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    ASSERT_EQ(pieces[i].result, 1u) << vectors[i].file;
    ASSERT_EQ(crc32(0, pieces[i].out), vectors[i].plain_crc) << vectors[i].file;
  }
}

TEST_F(CudaGdeflateDecode, reads_what_the_cpu_writes_at_every_level) {
  std::vector<Bytes> plains;
  std::vector<Bytes> pages;
  const auto add = [&](Bytes plain, int level) {
    Bytes page = encode_to_page(plain, level);
    if (page.empty()) return;
    plains.push_back(std::move(plain));
    pages.push_back(std::move(page));
  };
  for (const Bytes& sample : read_corpus_samples())
    for (int level = 0; level < level_count; ++level)
      add(sample, level);
  for (std::size_t round = 0; round < 3000 / test_part(); ++round) {
    const std::size_t size =
        1 + random_.below(round % 16 == 0 ? page_plain_size_max : std::size_t{3000});
    add(make_plain(round % kind_count, size), static_cast<int>(random_.below(level_count)));
  }
  for (std::size_t kind = 0; kind < kind_count; ++kind)
    for (std::size_t size = page_plain_size_max - 2; size <= page_plain_size_max; ++size)
      add(make_plain(kind, size), static_cast<int>(random_.below(level_count)));
  ASSERT_GT(pages.size(), 1000 / test_part());
  expect_decodes(plains, pages);
}

TEST_F(CudaGdeflateDecode, reads_stored_and_fixed_blocks) {
  std::vector<Bytes> plains;
  std::vector<Bytes> pages;
  for (std::size_t size = 0; size < 400; ++size) {
    plains.push_back(random_.bytes(size % 100 == 99 ? 65536 - size / 100 : size));
    pages.push_back(write_plain_blocks(plains.back(), random_));
    ASSERT_EQ(judge_page(pages.back(), plains.back().size()), plains.back());
  }
  expect_decodes(plains, pages);
}

TEST_F(CudaGdeflateDecode, refuses_a_page_of_another_size) {
  std::vector<DevicePiece> pieces;
  for (const DataKind kind : {DataKind::zero, DataKind::text, DataKind::mixed}) {
    const Bytes page = encode_to_page(make_data(kind, 40000, random_), 3);
    for (const std::size_t asked : {0, 1, 39999, 40001, 65536, 65537})
      pieces.push_back({.in = page, .out_size = asked});
    for (const std::size_t cut : {1, 2, 3, 4, 40})
      pieces.push_back({.in = Bytes(page.begin(), page.end() - static_cast<std::ptrdiff_t>(cut)),
                        .out_size = 40000});
    Bytes longer = page;
    longer.resize(page.size() + 4);
    pieces.push_back({.in = longer, .out_size = 40000});
  }
  for (const std::size_t size : {0, 4, 124, 127, 128, 4096})
    pieces.push_back({.in = Bytes(size), .out_size = 0});
  for (DevicePiece& piece : pieces)
    ASSERT_FALSE(judge_page(piece.in, piece.out_size).has_value());
  decode_gdeflate(pieces);
  for (const DevicePiece& piece : pieces)
    EXPECT_EQ(piece.result, 0u) << piece.in.size() << " bytes for " << piece.out_size;
}

TEST_F(CudaGdeflateDecode, judges_hostile_pages_as_the_plain_decoder_does) {
  std::vector<DevicePiece> pieces;
  const std::vector<Bytes> samples = read_corpus_samples();
  for (std::size_t round = 0; round < 20000 / test_part(); ++round) {
    const std::size_t size = 140 + random_.below(round % 50 == 0 ? 60000 : 2000);
    const std::size_t kind = round % (kind_count + 2);
    Bytes plain;
    if (kind < kind_count) {
      plain = make_plain(kind, size);
    } else {
      const Bytes& sample = samples[random_.below(samples.size())];
      const auto from = static_cast<std::ptrdiff_t>(random_.below(sample.size() - size + 1));
      plain.assign(sample.begin() + from,
                   sample.begin() + from + static_cast<std::ptrdiff_t>(size));
    }
    Bytes page = round % 9 == 0
                     ? write_plain_blocks(plain, random_)
                     : encode_to_page(plain, static_cast<int>(random_.below(level_count)));
    if (page.empty()) page = random_.bytes(size);
    mutate(page, random_);
    if (random_.below(8) != 0) page.resize(page.size() / 4 * 4);
    pieces.push_back({.in = std::move(page), .out_size = random_.below(10) == 0 ? size - 1 : size});
  }
  decode_gdeflate(pieces);
  std::size_t refused = 0;
  std::size_t accepted = 0;
  for (const DevicePiece& piece : pieces) {
    const std::optional<Bytes> plain = judge_page(piece.in, piece.out_size);
    ASSERT_EQ(piece.result, plain.has_value() ? 1u : 0u);
    if (plain) {
      ASSERT_EQ(piece.out, *plain);
    }
    ++(plain ? accepted : refused);
  }
  EXPECT_GT(refused, 5000 / test_part());
  EXPECT_GT(accepted, 20 / test_part());
}

TEST_F(CudaGdeflateDecode, takes_no_tasks_at_all) {
  std::vector<DevicePiece> none;
  decode_gdeflate(none);
}

}  // namespace
}  // namespace nacre::engine::cuda
