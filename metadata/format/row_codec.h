// SPDX-License-Identifier: Apache-2.0
// Reading and writing the fields of row values. Internal to metadata/format.
//
// Integers are LEB128 varints, as in protocol buffers and LevelDB: seven bits a byte, lowest first,
// the top bit set in all bytes but the last. Only the shortest form is valid, so a value has one
// encoding. Signed integers are zigzag-coded first: 0, -1, 1, -2, … become 0, 1, 2, 3, …
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

inline constexpr std::uint8_t row_version = 1;

class RowWriter {
 public:
  RowWriter() { byte(row_version); }
  void byte(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void number(std::uint64_t value);
  void signed_number(std::int64_t value);
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// After the first field that is malformed or out of bounds, all fields read as zero and finish()
// returns corrupt. So a decoder reads all its fields first, and asks once.
class RowReader {
 public:
  // Reads the version byte. what is the row's name in messages.
  RowReader(std::string_view value, std::string_view what);
  std::uint8_t byte(std::uint8_t most);
  std::uint64_t number(std::uint64_t least = 0,
                       std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  std::uint32_t number_32(std::uint32_t least = 0,
                          std::uint32_t most = std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(number(least, most));
  }
  std::int64_t signed_number();
  std::string_view raw(std::size_t size);
  void require(bool holds) { failed_ = failed_ || !holds; }
  bool failed() const { return failed_; }
  // Error: corrupt if a field was bad or bytes are left.
  Result<void> finish() const;

 private:
  std::string_view value_;
  std::string_view what_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace nacre::metadata
