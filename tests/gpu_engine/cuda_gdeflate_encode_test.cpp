// SPDX-License-Identifier: Apache-2.0
// GDeflate pages made on the device against the CPU's encoder and decoder. Every launch takes many
// pieces, at odd addresses, between bands of bytes that must come back as they were.
#include <algorithm>

#include "gpu_engine/codec/gdeflate/decoder.h"
#include "gpu_engine/codec/gdeflate/encoder.h"
#include "gpu_engine/cuda/kernels/codecs.h"
#include "tests/gpu_engine/corpus.h"
#include "tests/gpu_engine/cuda_test_device.h"
#include "tests/gpu_engine/gdeflate_reference.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::size_t piece_size_max = 65536;
constexpr Byte untouched_out = 0xa5;

struct PieceToCode {
  Bytes in;
  std::size_t out_size;
  Bytes page = {};  // empty: none was made
};

struct Encoder {
  decltype(&gdeflate_encode) encode;
  decltype(&gdeflate_encode_workspace_size) workspace_size;
};
constexpr Encoder of_literals = {huffman_encode, huffman_encode_workspace_size};
constexpr Encoder of_items = {gdeflate_encode, gdeflate_encode_workspace_size};

void run(const Encoder& encoder, std::vector<PieceToCode>& pieces) {
  std::vector<std::size_t> in_at, out_at;
  std::size_t in_size = 32, out_size = 32;
  for (const PieceToCode& piece : pieces) {
    in_at.push_back(in_size + in_at.size() * 7 % 16);
    in_size = in_at.back() + piece.in.size() + 32;
    out_at.push_back(out_size + out_at.size() * 5 % 16);
    out_size = out_at.back() + piece.out_size + 32;
  }
  Bytes in(in_size, 0xff);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    std::copy(pieces[i].in.begin(), pieces[i].in.end(), in.begin() + in_at[i]);
  const DeviceArray<Byte> d_in(in);
  const DeviceArray<Byte> d_out(Bytes(out_size, untouched_out));
  std::vector<CodecTask> tasks;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    tasks.push_back({d_in.data() + in_at[i], d_out.data() + out_at[i],
                     static_cast<std::uint32_t>(pieces[i].in.size()),
                     static_cast<std::uint32_t>(pieces[i].out_size)});
  const auto count = static_cast<std::uint32_t>(tasks.size());
  const DeviceArray<CodecTask> d_tasks(tasks);
  const DeviceArray<std::uint32_t> d_results(std::vector<std::uint32_t>(count, 0xdeadbeef));
  const DeviceArray<Byte> workspace(Bytes(encoder.workspace_size(count), 0xee));
  ASSERT_CUDA(
      encoder.encode(d_tasks.data(), count, d_results.data(), workspace.data(), nullptr, 1));
  ASSERT_CUDA(cudaDeviceSynchronize());

  const std::vector<std::uint32_t> results = d_results.copy();
  const Bytes out = d_out.copy();
  std::size_t band = 0;
  const auto expect_untouched = [&](std::size_t to) {
    EXPECT_EQ(std::count(out.begin() + band, out.begin() + to, untouched_out),
              static_cast<std::ptrdiff_t>(to - band))
        << "bytes outside the output were written";
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    expect_untouched(out_at[i]);
    band = out_at[i] + pieces[i].out_size;
    ASSERT_LE(results[i], pieces[i].out_size);
    ASSERT_LT(results[i], std::max<std::size_t>(pieces[i].in.size(), 1));
    pieces[i].page.assign(out.begin() + out_at[i], out.begin() + out_at[i] + results[i]);
  }
  expect_untouched(out.size());
}

void expect_decoded(const PieceToCode& piece) {
  for (const auto decode : {engine::gdeflate::decode_page, engine::gdeflate::decode_page_plainly}) {
    Bytes plain(piece.in.size(), 0xee);
    ASSERT_TRUE(decode(piece.page, plain)) << plain.size() << " bytes";
    ASSERT_TRUE(plain == piece.in) << plain.size() << " bytes";
  }
}

Bytes cpu_page_of_literals(const Bytes& plain) {
  Bytes page(plain.size());
  page.resize(engine::gdeflate::encode_page_of_literals(plain, page));
  return page;
}

std::vector<PieceToCode> plain_pieces(TestRandom& random) {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size <= 600; size += 1 + size / 100)
    sizes.push_back(size);
  for (const std::size_t edge : {4096, 8192, 16384, 24576, 32768, 57344, 65532})
    for (std::size_t size = edge - 1; size <= edge + 4; ++size)
      sizes.push_back(size);
  std::vector<PieceToCode> pieces;
  for (const std::size_t size : sizes) {
    for (const DataKind kind : data_kinds)
      pieces.push_back({.in = make_data(kind, size, random), .out_size = size});
    Bytes periodic = random.bytes(size);
    const std::size_t period = 1 + random.below(std::max<std::size_t>(size, 1));
    for (std::size_t i = period; i < size; ++i)
      periodic[i] = periodic[i - period];
    pieces.push_back({.in = periodic, .out_size = size});
    // Quarters that are worth blocks of their own.
    Bytes quarters(size);
    for (std::size_t i = 0; i < size; ++i)
      quarters[i] = static_cast<Byte>(i * 4 / size * 60 + random.below(1 + i * 4 / size % 3 * 20));
    pieces.push_back({.in = quarters, .out_size = size});
  }
  return pieces;
}

// Every stride-th chunk of the corpus's files, cut into pieces.
std::vector<PieceToCode> corpus_pieces(std::size_t stride, const std::string& for_what) {
  std::vector<PieceToCode> pieces;
  for (const CorpusFile& file : read_corpus(stride, for_what))
    for (std::size_t at = 0; at < file.bytes.size(); at += piece_size_max) {
      const auto begin = file.bytes.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t size = std::min(piece_size_max, file.bytes.size() - at);
      pieces.push_back(
          {.in = Bytes(begin, begin + static_cast<std::ptrdiff_t>(size)), .out_size = size});
    }
  return pieces;
}

class CudaGdeflateEncode : public CudaTest {
 protected:
  TestRandom random_;
};

TEST_F(CudaGdeflateEncode, makes_the_cpus_pages_of_literals) {
  std::vector<PieceToCode> pieces = plain_pieces(random_);
  run(of_literals, pieces);
  if (HasFatalFailure()) return;
  std::size_t coded = 0;
  for (const PieceToCode& piece : pieces) {
    ASSERT_TRUE(piece.page == cpu_page_of_literals(piece.in)) << piece.in.size() << " bytes";
    coded += !piece.page.empty();
  }
  EXPECT_GT(coded, pieces.size() / 8);  // of which many are short, or noise
}

TEST_F(CudaGdeflateEncode, makes_pages_with_matches_that_the_cpu_reads) {
  std::vector<PieceToCode> pieces = plain_pieces(random_);
  run(of_items, pieces);
  if (HasFatalFailure()) return;
  std::size_t coded = 0;
  for (const PieceToCode& piece : pieces) {
    if (piece.page.empty()) continue;
    expect_decoded(piece);
    if (HasFatalFailure()) return;
    ++coded;
  }
  EXPECT_GT(coded, pieces.size() / 8);  // of which many are short, or noise
}

TEST_F(CudaGdeflateEncode, gives_up_what_does_not_fit) {
  for (const Encoder& encoder : {of_literals, of_items}) {
    std::vector<PieceToCode> whole;
    for (const std::size_t size : {200, 600, 5000, 65536})
      for (const DataKind kind : data_kinds)
        whole.push_back({.in = make_data(kind, size, random_), .out_size = size});
    run(encoder, whole);
    std::vector<PieceToCode> tight;
    for (const PieceToCode& piece : whole) {
      const std::size_t size = piece.page.size();
      for (const std::size_t room : {size + size / 50, size, size / 2, std::size_t{1}})
        tight.push_back({.in = piece.in, .out_size = std::min(room, piece.in.size())});
    }
    run(encoder, tight);
    if (HasFatalFailure()) return;
    std::size_t fitting = 0;
    for (const PieceToCode& piece : tight) {
      if (piece.page.empty()) continue;
      expect_decoded(piece);
      if (HasFatalFailure()) return;
      ++fitting;
    }
    EXPECT_GE(fitting, whole.size() / 2);
  }
}

TEST_F(CudaGdeflateEncode, codes_the_corpus_nearly_as_small_as_the_cpu) {
  std::vector<PieceToCode> pieces =
      corpus_pieces(10 * test_part(), "GDeflate encoders of the device");
  if (pieces.empty()) GTEST_SKIP() << "no corpus";
  run(of_literals, pieces);
  if (HasFatalFailure()) return;
  for (const PieceToCode& piece : pieces)
    ASSERT_TRUE(piece.page == cpu_page_of_literals(piece.in));

  run(of_items, pieces);
  if (HasFatalFailure()) return;
  std::size_t size = 0;
  std::size_t cpu_size = 0;
  for (const PieceToCode& piece : pieces) {
    size += piece.page.empty() ? piece.in.size() : piece.page.size();
    if (!piece.page.empty()) expect_decoded(piece);
    if (HasFatalFailure()) return;
    Bytes page(piece.in.size());
    const std::size_t by_cpu = engine::gdeflate::encode_page(1, piece.in, page);
    cpu_size += by_cpu == 0 ? piece.in.size() : by_cpu;
  }
  EXPECT_LE(static_cast<double>(size) * 0.95, static_cast<double>(cpu_size));
}

TEST_F(CudaGdeflateEncode, makes_pages_of_the_whole_corpus_that_the_reference_codec_reads) {
  const GdeflateReference reference;
  if (!reference) GTEST_SKIP() << "NACRE_GDEFLATE_REFERENCE names no library";
  std::vector<PieceToCode> pieces =
      corpus_pieces(test_part(), "GDeflate pages before the reference codec");
  if (pieces.empty()) GTEST_SKIP() << "no corpus";
  for (const Encoder& encoder : {of_literals, of_items}) {
    run(encoder, pieces);
    if (HasFatalFailure()) return;
    std::size_t pages = 0;
    for (const PieceToCode& piece : pieces) {
      if (piece.page.empty()) continue;  // no smaller: kept as it is
      ASSERT_TRUE(reference.agrees(piece.page, piece.in)) << "piece of page " << pages;
      ++pages;
    }
    EXPECT_GT(pages, pieces.size() * 9 / 10);
    std::printf("pages that the reference codec read: %zu of %zu pieces\n", pages, pieces.size());
  }
}

TEST_F(CudaGdeflateEncode, takes_no_tasks_at_all) {
  std::vector<PieceToCode> none;
  run(of_literals, none);
  run(of_items, none);
}

}  // namespace
}  // namespace nacre::engine::cuda
