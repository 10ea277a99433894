// SPDX-License-Identifier: Apache-2.0
// LZ4 blocks on the device against liblz4 on the host, in both directions. Every launch takes many
// pieces, at odd addresses, between bands of bytes that must come back as they were.
#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <optional>

#include "gpu_engine/codec/codec.h"
#include "gpu_engine/cuda/kernels/codecs.h"
#include "tests/gpu_engine/corpus.h"
#include "tests/gpu_engine/cuda_pieces.h"
#include "tests/gpu_engine/lz4_judge.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::size_t lz4_piece_size_max = 65536;

const char* chars(const Bytes& bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(Bytes& bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

// The size of the cpu's block, or the plain size if that is no smaller.
std::size_t by_cpu(const Bytes& plain) {
  Bytes out(plain.size());
  return compress_to_fit(Codec::lz77, 0, plain, out, plain.size() - 1).value_or(plain.size());
}

// How pieces are handled depends on how many there are at once.
constexpr std::size_t lz4_counts_at_once[] = {std::size_t{1} << 20, 1000, 300};

void encode_lz4(std::vector<DevicePiece>& pieces, int level = 0,
                std::size_t at_once = lz4_counts_at_once[0]) {
  in_lots(pieces, at_once, [&](std::vector<DevicePiece>& lot) {
    const DeviceArray<Byte> workspace(
        lz4_encode_workspace_size(static_cast<std::uint32_t>(lot.size())));
    run_pieces(lot, [&](const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
      return lz4_encode(tasks, count, results, workspace.data(), nullptr, level);
    });
  });
}

void decode_lz4(std::vector<DevicePiece>& pieces, std::size_t at_once = lz4_counts_at_once[0]) {
  in_lots(pieces, at_once, [](std::vector<DevicePiece>& lot) {
    run_pieces(lot, [](const CodecTask* tasks, std::uint32_t count, std::uint32_t* results) {
      return lz4_decode(tasks, count, results, nullptr, nullptr);
    });
  });
}

Bytes by_liblz4(const Bytes& plain, int thorough_level = 0) {
  Bytes coded(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(plain.size()))));
  const int plain_size = static_cast<int>(plain.size());
  const int room = static_cast<int>(coded.size());
  const int size =
      thorough_level == 0
          ? LZ4_compress_default(chars(plain), chars(coded), plain_size, room)
          : LZ4_compress_HC(chars(plain), chars(coded), plain_size, room, thorough_level);
  coded.resize(static_cast<std::size_t>(size));
  return coded;
}

Bytes coded_of(const DevicePiece& piece) {
  return Bytes(piece.out.begin(), piece.out.begin() + piece.result);
}

bool liblz4_gives_back(const DevicePiece& piece) {
  const Bytes coded = coded_of(piece);
  Bytes plain(piece.in.size());
  const int size = LZ4_decompress_safe(chars(coded), chars(plain), static_cast<int>(coded.size()),
                                       static_cast<int>(plain.size()));
  return size == static_cast<int>(plain.size()) && plain == piece.in;
}

Bytes periodic(std::size_t size, std::size_t period, TestRandom& random) {
  Bytes bytes = random.bytes(size);
  for (std::size_t i = period; i < size; ++i)
    bytes[i] = bytes[i - period];
  return bytes;
}

// The verdict of the format on a block. If it is good, liblz4 must accept it too and give the same
// bytes, because the verdict of a device is not checked again.
std::optional<Bytes> judge(const Bytes& coded, std::size_t plain_size) {
  const std::optional<Bytes> plain = decode_lz4_plainly(coded, plain_size);
  if (!plain) return std::nullopt;
  Bytes by_liblz4(plain_size);
  EXPECT_EQ(LZ4_decompress_safe(chars(coded), chars(by_liblz4), static_cast<int>(coded.size()),
                                static_cast<int>(plain_size)),
            static_cast<int>(plain_size));
  EXPECT_EQ(*plain, by_liblz4);
  return plain;
}

std::vector<std::size_t> sizes_at_every_edge() {
  std::vector<std::size_t> sizes;
  for (std::size_t size = 0; size <= 600; ++size)
    sizes.push_back(size);
  for (std::size_t size : {4095, 4096, 4097, 32768, 65519, 65520, 65523, 65524, 65525, 65530})
    sizes.push_back(size);
  for (std::size_t size = lz4_piece_size_max - 5; size <= lz4_piece_size_max; ++size)
    sizes.push_back(size);
  return sizes;
}

std::vector<Bytes> plain_lz4_pieces(TestRandom& random) {
  std::vector<Bytes> pieces;
  for (std::size_t size : sizes_at_every_edge()) {
    for (DataKind kind : data_kinds)
      pieces.push_back(make_data(kind, size, random));
    pieces.push_back(periodic(size, 1 + random.below(70), random));
  }
  for (std::size_t period = 1; period <= 300; ++period)
    pieces.push_back(periodic(lz4_piece_size_max - random.below(400), period, random));
  return pieces;
}

class CudaLz4 : public CudaTest {
 protected:
  TestRandom random_;
};

TEST_F(CudaLz4, encodes_what_liblz4_and_the_device_decode) {
  const std::vector<Bytes> plains = plain_lz4_pieces(random_);
  for (int way = 0; way < 4; ++way) {
    const int level = way < 3 ? way : 9;
    std::vector<DevicePiece> pieces;
    for (const Bytes& plain : plains)
      pieces.push_back({.in = plain, .out_size = plain.size() + random_.below(300)});
    encode_lz4(pieces, level, lz4_counts_at_once[way % 3]);
    std::vector<DevicePiece> back;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const DevicePiece& piece = pieces[i];
      ASSERT_LT(piece.result, std::max<std::size_t>(piece.in.size(), 1));
      if (piece.result == 0) continue;
      ASSERT_TRUE(liblz4_gives_back(piece))
          << "piece " << i << " of " << piece.in.size() << " bytes, level " << level;
      back.push_back({.in = coded_of(piece), .out_size = piece.in.size(), .out = piece.in});
    }
    ASSERT_GT(back.size(), plains.size() / 2);
    std::vector<DevicePiece> decoded = back;
    decode_lz4(decoded, lz4_counts_at_once[way % 3]);
    for (std::size_t i = 0; i < back.size(); ++i) {
      ASSERT_EQ(decoded[i].result, 1u) << "coded piece " << i;
      ASSERT_EQ(decoded[i].out, back[i].out) << "coded piece " << i;
    }
  }
}

TEST_F(CudaLz4, encodes_nearly_as_small_as_liblz4) {
  for (std::size_t at_once : lz4_counts_at_once) {
    for (DataKind kind : {DataKind::text, DataKind::mixed}) {
      std::vector<DevicePiece> pieces;
      std::size_t by_liblz4_size = 0;
      for (int i = 0; i < 800; ++i) {
        pieces.push_back(
            {.in = make_data(kind, lz4_piece_size_max, random_), .out_size = lz4_piece_size_max});
        by_liblz4_size += std::min(by_liblz4(pieces.back().in).size(), lz4_piece_size_max);
      }
      encode_lz4(pieces, 0, at_once);
      std::size_t size = 0;
      for (const DevicePiece& piece : pieces)
        size += piece.result != 0 ? piece.result : lz4_piece_size_max;
      EXPECT_LT(size * 95 / 100, by_liblz4_size) << "kind " << static_cast<int>(kind);
    }
  }
}

// The chunks of all seven files. The ratio must be at least 0.95 of liblz4's and of the cpu's, and
// liblz4 must decode the blocks to the files.
TEST_F(CudaLz4, encodes_the_corpus_nearly_as_small_as_liblz4_and_the_cpu) {
  const auto corpus = read_corpus(test_part(), "LZ4 encoder of the device");
  if (corpus.empty()) GTEST_SKIP() << "no corpus";
  std::size_t plain_size = 0, size = 0, by_liblz4_size = 0, by_cpu_size = 0;
  for (const CorpusFile& file : corpus) {
    std::vector<DevicePiece> pieces;
    for (std::size_t at = 0; at < file.bytes.size(); at += lz4_piece_size_max) {
      const std::size_t end = std::min(at + lz4_piece_size_max, file.bytes.size());
      pieces.push_back({.in = Bytes(file.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                    file.bytes.begin() + static_cast<std::ptrdiff_t>(end)),
                        .out_size = end - at});
      by_liblz4_size += std::min(by_liblz4(pieces.back().in).size(), end - at);
      by_cpu_size += by_cpu(pieces.back().in);
    }
    encode_lz4(pieces);
    for (const DevicePiece& piece : pieces) {
      plain_size += piece.in.size();
      size += piece.result != 0 ? piece.result : piece.in.size();
      if (piece.result == 0) continue;
      ASSERT_TRUE(liblz4_gives_back(piece)) << file.name;
    }
  }
  const auto ratio = [&](std::size_t of) {
    return static_cast<double>(plain_size) / static_cast<double>(of);
  };
  std::printf("ratio of the device's lz77 %.4f, of liblz4 %.4f, of the cpu %.4f\n", ratio(size),
              ratio(by_liblz4_size), ratio(by_cpu_size));
  EXPECT_GE(ratio(size), 0.95 * ratio(by_liblz4_size));
  EXPECT_GE(ratio(size), 0.95 * ratio(by_cpu_size));
}

TEST_F(CudaLz4, gives_up_what_does_not_fit) {
  std::vector<DevicePiece> whole;
  for (std::size_t size : {20, 100, 600, 5000, 65536})
    for (DataKind kind : data_kinds)
      whole.push_back({.in = make_data(kind, size, random_), .out_size = size});
  encode_lz4(whole);
  std::vector<DevicePiece> tight;
  for (const DevicePiece& piece : whole) {
    const std::size_t size = piece.result != 0 ? piece.result : piece.in.size();
    for (std::size_t room : {size, size - 1, size / 2, std::size_t{1}, std::size_t{0}})
      tight.push_back({.in = piece.in, .out_size = room});
  }
  encode_lz4(tight);
  std::size_t fitting = 0;
  for (const DevicePiece& piece : tight) {
    ASSERT_LE(piece.result, piece.out_size);
    if (piece.result == 0) continue;
    fitting++;
    EXPECT_EQ(judge(Bytes(piece.out.begin(), piece.out.begin() + piece.result), piece.in.size()),
              piece.in);
  }
  EXPECT_GT(fitting, whole.size() / 2);
}

TEST_F(CudaLz4, decodes_what_liblz4_encodes) {
  const std::vector<Bytes> plains = plain_lz4_pieces(random_);
  for (int thorough_level : {0, 3, LZ4HC_CLEVEL_MAX}) {
    std::vector<DevicePiece> coded;
    for (const Bytes& plain : plains)
      if (!plain.empty())
        coded.push_back({.in = by_liblz4(plain, thorough_level), .out_size = plain.size()});
    for (std::size_t at_once : lz4_counts_at_once) {
      std::vector<DevicePiece> pieces = coded;
      decode_lz4(pieces, at_once);
      auto piece = pieces.begin();
      for (const Bytes& plain : plains) {
        if (plain.empty()) continue;
        ASSERT_EQ(piece->result, 1u) << plain.size() << " bytes, level " << thorough_level;
        ASSERT_EQ(piece->out, plain) << plain.size() << " bytes, level " << thorough_level;
        ++piece;
      }
    }
  }
}

TEST_F(CudaLz4, refuses_a_code_of_another_size) {
  std::vector<DevicePiece> pieces;
  for (DataKind kind : data_kinds) {
    const Bytes coded = by_liblz4(make_data(kind, 40000, random_));
    for (std::size_t asked : {0, 1, 39999, 40001, 65536})
      pieces.push_back({.in = coded, .out_size = asked});
    pieces.push_back({.in = Bytes(coded.begin(), coded.end() - 1), .out_size = 40000});
    Bytes longer = coded;
    longer.push_back(0);
    pieces.push_back({.in = longer, .out_size = 40000});
  }
  pieces.push_back({.in = {}, .out_size = 0});
  pieces.push_back({.in = {}, .out_size = 100});
  decode_lz4(pieces);
  for (const DevicePiece& piece : pieces)
    EXPECT_EQ(piece.result, 0u) << piece.in.size() << " bytes";
}

// liblz4 refuses them, so the device must not call them good.
TEST_F(CudaLz4, refuses_matches_that_reach_into_the_last_bytes) {
  std::vector<DevicePiece> pieces;
  pieces.push_back({.in = {std::begin(lz4_block_without_last_literals),
                           std::end(lz4_block_without_last_literals)},
                    .out_size = 32});
  std::vector<bool> valid = {false};
  // A literal, sequences that fill windows, and one whose match ends some bytes before the end.
  for (std::size_t sequences : {0, 1, 5, 12, 40}) {
    for (std::size_t match_size : {4, 7, 8, 18, 19, 273, 274, 600}) {
      for (std::size_t last = 0; last <= 14; ++last) {
        DevicePiece piece = {.in = {0x10, 'a', 1, 0}, .out_size = 5};
        for (std::size_t i = 0; i < sequences; ++i)
          piece.in.insert(piece.in.end(), {0x10, static_cast<Byte>(i), 2, 0});
        piece.in.push_back(static_cast<Byte>(0x10 + std::min<std::size_t>(match_size - 4, 15)));
        piece.in.insert(piece.in.end(), {'b', 3, 0});
        if (match_size >= 19) {
          piece.in.insert(piece.in.end(), (match_size - 19) / 255, 255);
          piece.in.push_back(static_cast<Byte>((match_size - 19) % 255));
        }
        piece.in.push_back(static_cast<Byte>(last << 4));
        piece.in.insert(piece.in.end(), last, 'c');
        piece.out_size += 5 * sequences + 1 + match_size + last;
        pieces.push_back(piece);
        valid.push_back(last >= 5 && match_size + last >= 12);
      }
    }
  }
  for (std::size_t at_once : lz4_counts_at_once) {
    std::vector<DevicePiece> decoded = pieces;
    decode_lz4(decoded, at_once);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      ASSERT_EQ(judge(pieces[i].in, pieces[i].out_size).has_value(), valid[i]) << i;
      ASSERT_EQ(decoded[i].result, valid[i] ? 1u : 0u) << i;
    }
  }
}

TEST_F(CudaLz4, judges_hostile_streams_as_the_format_does) {
  for (std::size_t at_once : {std::size_t{20000}, std::size_t{500}}) {
    std::vector<DevicePiece> pieces;
    for (std::size_t round = 0; round < 10000 / test_part(); ++round) {
      const std::size_t size = 1 + random_.below(round % 50 == 0 ? lz4_piece_size_max : 2000);
      const DataKind kind = data_kinds[random_.below(data_kinds.size())];
      Bytes coded = round % 100 == 7 ? random_.bytes(size)
                                     : by_liblz4(make_data(kind, size, random_), round % 2 * 9);
      mutate(coded, random_);
      pieces.push_back({.in = coded, .out_size = size});
    }
    decode_lz4(pieces, at_once);
    std::size_t refused = 0;
    for (const DevicePiece& piece : pieces) {
      const std::optional<Bytes> plain = judge(piece.in, piece.out_size);
      ASSERT_EQ(piece.result, plain.has_value() ? 1u : 0u);
      if (plain) {
        ASSERT_EQ(piece.out, *plain);
      }
      refused += !plain;
    }
    EXPECT_GT(refused, 1000 / test_part()) << "the mutations must reach the decoder's checks";
  }
}

TEST_F(CudaLz4, takes_no_tasks_at_all) {
  std::vector<DevicePiece> none;
  encode_lz4(none);
  decode_lz4(none);
}

}  // namespace
}  // namespace nacre::engine::cuda
