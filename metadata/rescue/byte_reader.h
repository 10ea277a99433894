// SPDX-License-Identifier: Apache-2.0
// Reads RocksDB's encodings from the front of some bytes. After the first field that is missing,
// all fields are empty and is_good() is false.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu_engine/base/bytes.h"

namespace nacre::metadata {

class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) : bytes_(bytes) {}
  explicit ByteReader(std::string_view text) : bytes_(as_bytes(text)) {}

  std::uint64_t varint64() { return varint(10); }
  std::uint32_t varint32() {
    const std::uint64_t value = varint(5);
    if (value > UINT32_MAX) is_good_ = false;
    return is_good_ ? static_cast<std::uint32_t>(value) : 0;
  }
  std::string_view text(std::uint64_t size) {
    if (!is_good_ || size > bytes_.size() - at_) {
      is_good_ = false;
      return {};
    }
    const ByteView taken = bytes_.subspan(at_, size);
    at_ += size;
    return as_text(taken);
  }
  std::string_view sized_text() { return text(varint32()); }
  std::size_t at() const { return at_; }
  bool is_at_end() const { return at_ == bytes_.size(); }
  bool is_good() const { return is_good_; }
  void require(bool holds) { is_good_ = is_good_ && holds; }

 private:
  std::uint64_t varint(int size_max) {
    std::uint64_t value = 0;
    for (int i = 0; i < size_max && is_good_; ++i) {
      if (at_ == bytes_.size()) break;
      const Byte byte = bytes_[at_++];
      value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
    is_good_ = false;
    return 0;
  }

  ByteView bytes_;
  std::size_t at_ = 0;
  bool is_good_ = true;
};

}  // namespace nacre::metadata
