// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu_engine/zstd_frames.h"

#define ZSTD_STATIC_LINKING_ONLY  // for parameters that only tests need
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>

#include "gpu_engine/codec/codec.h"

namespace nacre::engine {
namespace {

std::size_t random_content_size(TestRandom& random, std::size_t size_max) {
  const std::size_t bits = random.below(20);
  std::size_t size = 1 + random.below(std::size_t{2} << bits);
  if (random.below(8) == 0) size = (std::size_t{1} << random.below(21)) + random.below(3);
  if (random.below(16) == 0) size = 1 + random.below(size_max);
  return std::min(size, size_max);
}

// Stretches of noise of an alphabet and copies of earlier stretches: lengths and distances of all
// sizes.
Bytes make_copies(std::size_t size, TestRandom& random) {
  Bytes made;
  const std::size_t alphabet = 1 + random.below(random.below(2) == 0 ? 8 : 256);
  const std::size_t length_bits = 1 + random.below(16);
  const std::size_t copies_in_ten = random.below(11);
  std::size_t distance = 1;
  while (made.size() < size) {
    const std::size_t length = 1 + random.below(std::size_t{1} << random.below(length_bits));
    if (random.below(10) < copies_in_ten && !made.empty()) {
      // Distances are often those of before, or nearly.
      if (random.below(3) == 0) distance = 1 + random.below(made.size());
      if (random.below(6) == 0 && distance > 1) --distance;
      for (std::size_t i = 0; i < length; ++i)
        made.push_back(made[made.size() - std::min(distance, made.size())]);
    } else {
      // The higher the number, the rarer it is.
      for (std::size_t i = 0; i < length; ++i)
        made.push_back(static_cast<Byte>(random.below(1 + random.below(alphabet))));
    }
  }
  made.resize(size);
  return made;
}

ZstdFrame compress_by(ZSTD_CCtx* context, ByteView content) {
  ZstdFrame frame = {Bytes(ZSTD_compressBound(content.size())), content.size()};
  const std::size_t size =
      ZSTD_compress2(context, frame.code.data(), frame.code.size(), content.data(), content.size());
  EXPECT_FALSE(ZSTD_isError(size)) << ZSTD_getErrorName(size);
  frame.code.resize(ZSTD_isError(size) ? 0 : size);
  return frame;
}

ZSTD_CCtx* test_context() {
  static ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_reset(context, ZSTD_reset_session_and_parameters);
  return context;
}

}  // namespace

Bytes ZstdFrames::make_content(std::size_t size_max) {
  const std::size_t size = random_content_size(random_, size_max);
  const std::size_t kind = random_.below(8);
  if (kind < data_kinds.size()) return make_data(data_kinds[kind], size, random_);
  if (kind == 4 || corpus_.size() < size) return make_copies(size, random_);
  const ByteView cut = corpus_.subspan(random_.below(corpus_.size() - size + 1), size);
  return Bytes(cut.begin(), cut.end());
}

ZstdFrame ZstdFrames::at_level(ByteView content, int level) {
  ZSTD_CCtx* const context = test_context();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  return compress_by(context, content);
}

ZstdFrame ZstdFrames::make(std::size_t size_max) {
  const Bytes content = make_content(size_max);
  // The thorough levels take their time.
  const int level_max = content.size() > 200000 ? 5 : content.size() > 20000 ? 12 : 22;
  const int level = static_cast<int>(random_.below(static_cast<std::size_t>(level_max + 8))) - 7;
  if (random_.below(3) != 0) return at_level(content, level);
  ZSTD_CCtx* const context = test_context();
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
  const auto number = [&](std::size_t count) { return static_cast<int>(random_.below(count)); };
  if (number(2) == 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 10 + number(11));
  if (number(3) == 0) ZSTD_CCtx_setParameter(context, ZSTD_c_targetCBlockSize, 1340 + number(4000));
  if (number(3) == 0) ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, 3 + number(5));
  if (number(3) == 0)
    ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, 1 + number(level > 12 ? 9 : 6));
  if (number(3) == 0) ZSTD_CCtx_setParameter(context, ZSTD_c_literalCompressionMode, number(3));
  if (number(3) == 0) ZSTD_CCtx_setParameter(context, ZSTD_c_useBlockSplitter, 1);
  return compress_by(context, content);
}

ZstdFrame ZstdFrames::damage(const ZstdFrame& frame) {
  ZstdFrame damaged = frame;
  switch (random_.below(6)) {
    case 0:
      damaged.code.resize(random_.below(frame.code.size()));
      break;
    case 1:
      damaged.plain_size = std::max<std::size_t>(frame.plain_size + random_.below(3), 2) - 1;
      break;
    case 2:
      // Near the front, where headers and tables are.
      for (std::size_t i = 1 + random_.below(2); i > 0; --i)
        damaged.code[random_.below(std::min<std::size_t>(frame.code.size(), 60))] ^=
            static_cast<Byte>(1u << random_.below(8));
      break;
    case 3:
      // Near the end, where sequences are.
      for (std::size_t i = 1 + random_.below(2); i > 0; --i)
        damaged.code[frame.code.size() - 1 -
                     random_.below(std::min<std::size_t>(frame.code.size(), 60))] ^=
            static_cast<Byte>(1u << random_.below(8));
      break;
    default:
      mutate(damaged.code, random_);
  }
  return damaged;
}

std::optional<Bytes> judge_zstd_frame(const ZstdFrame& frame) {
  Bytes plain(frame.plain_size);
  if (plain.empty() || !decompress(Codec::zstd, frame.code, plain)) return std::nullopt;
  return plain;
}

}  // namespace nacre::engine
