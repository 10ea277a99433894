// SPDX-License-Identifier: Apache-2.0
// Tests of codecs of the device: pieces that one launch, on a device or emulated, codes or decodes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/codec/codec.h"
#include "gpu_engine/cuda/kernels/tasks.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::cuda {

struct Piece {
  Bytes in;
  std::size_t out_size;
  std::uint32_t result = 0;
  Bytes out = {};
};

// The pieces' inputs and outputs in two arenas, at odd addresses, between bytes that must stay.
class PieceArenas {
 public:
  explicit PieceArenas(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) {
      in_at_.push_back(place(in_size_, piece.in.size()));
      out_at_.push_back(place(out_size_, piece.out_size));
    }
    in.assign(in_size_, 0xff);
    out.assign(out_size_, untouched);
    for (std::size_t i = 0; i < pieces.size(); ++i)
      std::copy(pieces[i].in.begin(), pieces[i].in.end(), in.begin() + in_at_[i]);
  }

  // Tasks for arenas that lie at these addresses.
  std::vector<CodecTask> tasks(const std::vector<Piece>& pieces, const Byte* in_base,
                               Byte* out_base) const {
    std::vector<CodecTask> made;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      made.push_back({in_base + in_at_[i], out_base + out_at_[i],
                      static_cast<std::uint32_t>(pieces[i].in.size()),
                      static_cast<std::uint32_t>(pieces[i].out_size)});
    return made;
  }

  // Gives the pieces their results and outputs, from out.
  void take(std::vector<Piece>& pieces, const std::vector<std::uint32_t>& results) const {
    std::size_t band = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      expect_untouched(band, out_at_[i]);
      band = out_at_[i] + pieces[i].out_size;
      pieces[i].result = results[i];
      pieces[i].out.assign(out.begin() + out_at_[i], out.begin() + band);
    }
    expect_untouched(band, out.size());
  }

  Bytes in;
  Bytes out;

 private:
  static constexpr Byte untouched = 0xa5;

  std::size_t place(std::size_t& used, std::size_t size) const {
    const std::size_t at = used + 32 + (out_at_.size() * 7) % 16;
    used = at + size + 32;
    return at;
  }
  void expect_untouched(std::size_t from, std::size_t to) const {
    EXPECT_EQ(std::count(out.begin() + from, out.begin() + to, untouched),
              static_cast<std::ptrdiff_t>(to - from))
        << "bytes outside the output were written";
  }

  std::vector<std::size_t> in_at_, out_at_;
  std::size_t in_size_ = 0;
  std::size_t out_size_ = 0;
};

// The code that the CPU makes of a piece; empty where it would be stored as it is.
inline Bytes coded_by_cpu(Codec codec, const Bytes& plain) {
  Bytes stream(stream_size_bound(codec, plain.size()));
  stream.resize(compress(codec, 0, plain, stream).value());
  if (stream.empty() || (load_le<std::uint32_t>(stream.data()) >> 31) != 0) return {};
  return Bytes(stream.begin() + 4, stream.end());
}

// The bytes that the CPU decodes from a piece's code; none if it refuses the code.
inline std::optional<Bytes> decoded_by_cpu(Codec codec, const Bytes& code, std::size_t plain_size) {
  if (plain_size == 0) return std::nullopt;
  Bytes stream(4);
  store_le(stream.data(), static_cast<std::uint32_t>(code.size()));
  stream.insert(stream.end(), code.begin(), code.end());
  Bytes plain(plain_size);
  if (!decompress(codec, stream, plain)) return std::nullopt;
  return plain;
}

// Stretches of all lengths of equal bytes, pairs, words and noise, so that every kind of group
// meets every other one and every edge of a part; alphabets from one byte on.
inline Bytes make_stretches(std::size_t size, TestRandom& random) {
  Bytes made;
  const std::size_t noise_in_ten = random.below(11);
  const std::size_t alphabet = 1 + random.below(256);
  while (made.size() < size) {
    const std::size_t length = 1 + random.below(std::size_t{1} << random.below(10));
    if (random.below(10) < noise_in_ten) {
      for (std::size_t i = 0; i < length; ++i)
        made.push_back(static_cast<Byte>(random.below(alphabet)));
    } else if (random.below(3) == 0 && !made.empty()) {
      const std::size_t back = 1 + random.below(made.size());
      for (std::size_t i = 0; i < length; ++i)
        made.push_back(made[made.size() - back]);
    } else {
      made.insert(made.end(), length, static_cast<Byte>(random.below(3)));
    }
  }
  made.resize(size);
  return made;
}

// One size in count is a piece's, the others mostly small or at the edge of a part.
inline std::size_t random_piece_size(TestRandom& random, std::size_t part_size, std::size_t count) {
  if (random.below(count) == 0) return sub_block_size_bytes - random.below(random.below(300) + 1);
  if (random.below(4) == 0) return part_size * (1 + random.below(2)) - 2 + random.below(5);
  return 1 + random.below(random.below(3) == 0 ? 2 * part_size : 700);
}

}  // namespace nacre::engine::cuda
