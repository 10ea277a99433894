// SPDX-License-Identifier: Apache-2.0
// zstd frames for tests: what libzstd makes at any level of data of any kind, as codec zstd has
// them (codec/zstd.cpp), and frames that are damaged.
#pragma once

#include <optional>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {

struct ZstdFrame {
  Bytes code;
  std::size_t plain_size;
};

class ZstdFrames {
 public:
  // corpus: bytes of which some of the contents are cut; may be empty.
  ZstdFrames(TestRandom& random, ByteView corpus) : random_(random), corpus_(corpus) {}

  // Content of any kind, of 1 to size_max bytes; short ones are the most frequent.
  Bytes make_content(std::size_t size_max);
  // Makes a frame by libzstd at any level, also at negative ones. One frame in three has a window,
  // a block size or a strategy of its own, so that it has several blocks of every kind.
  ZstdFrame make(std::size_t size_max);
  // The frame of a content at one of libzstd's levels.
  static ZstdFrame at_level(ByteView content, int level);
  // Damage, cuts, and wrong sizes.
  ZstdFrame damage(const ZstdFrame& frame);

 private:
  TestRandom& random_;
  ByteView corpus_;
};

// The bytes that the cpu (codec zstd) decodes from a frame; none if it refuses the frame.
std::optional<Bytes> judge_zstd_frame(const ZstdFrame& frame);

}  // namespace nacre::engine
