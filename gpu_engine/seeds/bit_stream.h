// SPDX-License-Identifier: Apache-2.0
// Bits to and from bytes, the first bit highest. Bits past the end read as zeros, and is_good() is
// then false.
#pragma once

#include <bit>
#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::seeds {

class BitWriter {
 public:
  explicit BitWriter(MutableByteView out) : out_(out) {}
  // The lowest bit_count bits of value, highest first.
  void put(std::uint64_t value, int bit_count) {
    for (int bit = bit_count - 1; bit >= 0; --bit) {
      byte_ = static_cast<Byte>(byte_ << 1 | (value >> bit & 1));
      if (++filled_ == 8) flush();
    }
  }
  // Elias' gamma code of a number from 1 on: a one for each of the number's bits but the first, a
  // zero, then those bits.
  void put_gamma(std::uint64_t number) {
    const int rest = static_cast<int>(std::bit_width(number)) - 1;
    for (int i = 0; i < rest; ++i)
      put(1, 1);
    put(0, 1);
    put(number, rest);
  }
  // Fills the last byte with zeros and returns the number of bytes.
  std::size_t finish() {
    while (filled_ != 0)
      put(0, 1);
    return size_;
  }

 private:
  void flush() {
    out_[size_++] = byte_;
    byte_ = 0;
    filled_ = 0;
  }
  MutableByteView out_;
  std::size_t size_ = 0;
  Byte byte_ = 0;
  int filled_ = 0;
};

class BitReader {
 public:
  explicit BitReader(ByteView in) : in_(in) {}
  std::uint64_t take(int bit_count) {
    std::uint64_t value = 0;
    for (int i = 0; i < bit_count; ++i, ++at_) {
      const bool bit = at_ / 8 < in_.size() && (in_[at_ / 8] >> (7 - at_ % 8) & 1) != 0;
      value = value << 1 | (bit ? 1 : 0);
    }
    return value;
  }
  // 0 when there is no such code.
  std::uint64_t take_gamma() {
    int rest = 0;
    while (take(1) == 1) {
      if (++rest > 32) return 0;
    }
    return std::uint64_t{1} << rest | take(rest);
  }
  bool is_good() const { return at_ <= 8 * in_.size(); }

 private:
  ByteView in_;
  std::size_t at_ = 0;
};

}  // namespace nacre::engine::seeds
