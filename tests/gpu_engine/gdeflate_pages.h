// SPDX-License-Identifier: Apache-2.0
// GDeflate pages for tests of decoders: of every level and kind of data and of odd sizes, hostile
// ones, and what the plain decoder says of them.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "gpu_engine/codec/gdeflate/decoder.h"
#include "gpu_engine/codec/gdeflate/encoder.h"
#include "gpu_engine/codec/gdeflate/page_writer.h"
#include "tests/gpu_engine/gdeflate_vectors.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::gdeflate {

// Level 0: literals alone. Empty where the page would not be smaller.
inline Bytes encode_to_page(const Bytes& plain, int level) {
  Bytes page(plain.size());
  page.resize(level == 0 ? encode_page_of_literals(plain, page) : encode_page(level, plain, page));
  return page;
}

// The bytes of a page; none if it is not valid.
inline std::optional<Bytes> judge_page(const Bytes& page, std::size_t plain_size) {
  Bytes plain(plain_size);
  if (!decode_page_plainly(page, plain)) return std::nullopt;
  return plain;
}

// period: 1 or more.
inline Bytes make_periodic(std::size_t size, std::size_t period, TestRandom& random) {
  Bytes bytes = random.bytes(size);
  for (std::size_t i = period; i < size; ++i)
    bytes[i] = bytes[i - period];
  return bytes;
}

// Bytes whose codes are of very different sizes, up to the longest.
inline Bytes make_skewed(std::size_t size, TestRandom& random) {
  Bytes bytes(size);
  for (Byte& byte : bytes) {
    byte = 0;
    for (std::uint64_t bits = random.next(); bits & 1; bits >>= 1)
      ++byte;
    if (random.below(40) == 0) byte = static_cast<Byte>(random.next());
  }
  return bytes;
}

// Stored blocks and blocks of fixed codes, of literals alone, some of them empty.
inline Bytes write_plain_blocks(const Bytes& plain, TestRandom& random) {
  Bytes page(PageWriter::page_size_bound(plain.size() * 9 + 26 * (plain.size() + 1000)));
  PageWriter writer(page.data());
  std::size_t at = 0;
  bool is_last = false;
  while (!is_last) {
    const std::size_t size = std::min(plain.size() - at, random.below(300));
    is_last = at + size == plain.size();
    const bool is_fixed = random.below(2) == 0;
    writer.put(0, {std::uint32_t{is_last} | std::uint32_t{is_fixed} << 1, 3});
    if (!is_fixed) writer.put(0, {static_cast<std::uint32_t>(size), 16});
    for (std::size_t i = 0; i < size; ++i) {
      const unsigned byte = plain[at + i];
      const unsigned lane = i % lane_count;
      if (!is_fixed)
        writer.put(lane, {byte, 8});
      else if (byte < 144)
        writer.put(lane, {reverse_code(48 + byte, 8), 8});
      else
        writer.put(lane, {reverse_code(400 + byte - 144, 9), 9});
    }
    if (is_fixed) writer.put(size % lane_count, {0, 7});
    at += size;
  }
  page.resize(writer.finish());
  return page;
}

}  // namespace nacre::engine::gdeflate
