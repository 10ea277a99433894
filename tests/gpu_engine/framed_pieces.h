// SPDX-License-Identifier: Apache-2.0
// Streams of codecs that restart in pieces (rle, lzw): docs/FORMAT.md, "Codec streams".
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "gpu_engine/codec/codec.h"

namespace nacre::engine {

inline Bytes compressed(Codec codec, ByteView plain) {
  Bytes stream(stream_size_bound(codec, plain.size()));
  stream.resize(compress(codec, 0, plain, stream).value());
  return stream;
}

// A stream of one coded sub-block out of pieces.
inline Bytes frame(const std::vector<Bytes>& pieces) {
  Bytes stream(4 + 2 * pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    store_le(stream.data() + 4 + 2 * i, static_cast<std::uint16_t>(pieces[i].size()));
    stream.insert(stream.end(), pieces[i].begin(), pieces[i].end());
  }
  store_le(stream.data(), static_cast<std::uint32_t>(stream.size() - 4));
  return stream;
}

// The pieces of such a stream.
inline std::vector<Bytes> pieces_of(ByteView stream, std::size_t plain_size,
                                    std::size_t piece_size_bytes) {
  const std::size_t count = (plain_size + piece_size_bytes - 1) / piece_size_bytes;
  EXPECT_EQ(load_le<std::uint32_t>(stream.data()), stream.size() - 4);
  std::vector<Bytes> pieces;
  ByteView rest = stream.subspan(4 + 2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const ByteView piece = rest.first(load_le<std::uint16_t>(stream.data() + 4 + 2 * i));
    pieces.emplace_back(piece.begin(), piece.end());
    rest = rest.subspan(piece.size());
  }
  EXPECT_TRUE(rest.empty());
  return pieces;
}

}  // namespace nacre::engine
