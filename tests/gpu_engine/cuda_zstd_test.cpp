// SPDX-License-Identifier: Apache-2.0
// The zstd decoder on a device, with libzstd on the cores as the judge.
#include <iostream>

#include "gpu_engine/cuda/kernels/codecs.h"
#include "tests/gpu_engine/cuda_piece_run.h"
#include "tests/gpu_engine/zstd_frames.h"

namespace nacre::engine::cuda {
namespace {

// Frames that are decoded by one launch.
constexpr std::size_t launch_bytes_max = 256u << 20;

class CudaZstd : public CudaTest {
 protected:
  static Bytes corpus_bytes() {
    Bytes bytes;
    for (const CorpusFile& file : read_corpus(4, "zstd on devices"))
      bytes.insert(bytes.end(), file.bytes.begin(), file.bytes.end());
    return bytes;
  }

  static void decode(std::vector<Piece>& pieces) {
    decode_on_device(pieces, zstd_decode_workspace_size, zstd_decode);
  }

  TestRandom random_;
};

TEST_F(CudaZstd, decodes_what_libzstd_makes) {
  const Bytes corpus = corpus_bytes();
  ZstdFrames frames(random_, corpus);
  const std::size_t count = 60000 / test_part();
  std::size_t made = 0;
  while (made < count) {
    std::vector<Piece> pieces;
    for (std::size_t bytes = 0; bytes < launch_bytes_max && made < count; ++made) {
      const std::size_t size_max = made % 200 == 0 ? 1u << 20 : made % 10 == 0 ? 1u << 17 : 20000;
      const ZstdFrame frame = frames.make(size_max);
      bytes += frame.plain_size;
      pieces.push_back({.in = frame.code, .out_size = frame.plain_size});
    }
    decode(pieces);
    if (HasFatalFailure()) return;
    for (const Piece& piece : pieces) {
      const std::optional<Bytes> expected = judge_zstd_frame({piece.in, piece.out_size});
      ASSERT_TRUE(expected.has_value());
      ASSERT_EQ(piece.result, 1u) << piece.out_size << " bytes";
      ASSERT_TRUE(piece.out == *expected) << piece.out_size << " bytes";
    }
  }
}

TEST_F(CudaZstd, decodes_every_level_and_edge_size) {
  std::vector<Piece> pieces;
  std::vector<Bytes> contents;
  for (const std::size_t size : edge_sizes) {
    if (size == 0) continue;
    for (const DataKind kind : data_kinds) {
      for (const int level : {-100, -7, -3, -1, 1, 2, 3, 5, 7, 10, 13, 15, 16, 19, 22}) {
        contents.push_back(make_data(kind, size, random_));
        const ZstdFrame frame = ZstdFrames::at_level(contents.back(), level);
        pieces.push_back({.in = frame.code, .out_size = frame.plain_size});
      }
    }
  }
  decode(pieces);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ASSERT_EQ(pieces[i].result, 1u) << i;
    ASSERT_TRUE(pieces[i].out == contents[i]) << i;
  }
}

// Frames that a device refuses are decoded on the cpu. So it may refuse more frames than libzstd,
// but must not accept more.
TEST_F(CudaZstd, takes_no_frame_that_libzstd_refuses) {
  const Bytes corpus = corpus_bytes();
  ZstdFrames frames(random_, corpus);
  std::vector<Piece> pieces;
  const std::size_t count = 60000 / test_part();
  for (std::size_t i = 0; i < count; ++i) {
    const ZstdFrame frame = frames.damage(frames.make(i % 100 == 0 ? 1u << 17 : 4000));
    // No task has more room than a frame may need.
    pieces.push_back({.in = frame.code, .out_size = frame.plain_size});
  }
  decode(pieces);
  if (HasFatalFailure()) return;
  std::size_t refused = 0;
  std::size_t refused_here_alone = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const std::optional<Bytes> expected = judge_zstd_frame({piece.in, piece.out_size});
    ASSERT_LE(piece.result, 1u);
    refused += piece.result == 0;
    refused_here_alone += expected && piece.result == 0;
    if (piece.result == 0) continue;
    ASSERT_TRUE(expected.has_value()) << "frame " << i;
    ASSERT_TRUE(piece.out == *expected) << "frame " << i;
  }
  std::cout << count << " damaged frames: " << refused << " refused, of which libzstd takes "
            << refused_here_alone << "\n";
  EXPECT_GT(refused, count / 2) << "the damage must reach the decoder's checks";
  EXPECT_LT(refused_here_alone, count / 50);
}

// Frames as codec zstd makes them of whole files, at its levels.
TEST_F(CudaZstd, decodes_the_corpus) {
  for (const std::size_t chunk_size : {std::size_t{64} << 10, std::size_t{1} << 20}) {
    std::vector<Piece> pieces;
    std::vector<Bytes> contents;
    for (const CorpusFile& file : read_corpus(8 * test_part(), "zstd on devices")) {
      for (std::size_t at = 0; at < file.bytes.size(); at += chunk_size) {
        const std::size_t size = std::min(chunk_size, file.bytes.size() - at);
        for (int level = 1; level <= 7; ++level) {
          contents.emplace_back(file.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                file.bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
          Bytes code(stream_size_bound(Codec::zstd, size));
          code.resize(compress(Codec::zstd, level, contents.back(), code).value());
          pieces.push_back({.in = code, .out_size = size});
        }
      }
    }
    if (pieces.empty()) GTEST_SKIP() << "no corpus";
    decode(pieces);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_EQ(pieces[i].result, 1u) << i;
      ASSERT_TRUE(pieces[i].out == contents[i]) << i;
    }
  }
}

}  // namespace
}  // namespace nacre::engine::cuda
