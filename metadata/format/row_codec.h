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

// Appends fields after the version byte. Neither writer nor reader is thread-safe.
class RowWriter {
 public:
  RowWriter() { byte(row_version); }
  void byte(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void number(std::uint64_t value);                           // 1 to 10 bytes
  void signed_number(std::int64_t value);                     // 1 to 10 bytes
  void raw(std::string_view bytes) { bytes_.append(bytes); }  // without a size
  std::string take() { return std::move(bytes_); }            // the row; called once, at the end

 private:
  std::string bytes_;
};

// After the first field that is malformed or out of bounds, all fields read as zero and finish()
// returns corrupt. So a decoder reads all its fields first, and asks once.
class RowReader {
 public:
  // Reads the version byte. what is the row's name in messages. Both views outlive the reader.
  RowReader(std::string_view value, std::string_view what);
  // The next field. Bounds are inclusive; a value outside of them is a bad field.
  std::uint8_t byte(std::uint8_t most);
  std::uint64_t number(std::uint64_t least = 0,
                       std::uint64_t most = std::numeric_limits<std::uint64_t>::max());
  std::uint32_t number_32(std::uint32_t least = 0,
                          std::uint32_t most = std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(number(least, most));
  }
  std::int64_t signed_number();
  // The next size bytes, as a view of the row. Empty if the row has fewer.
  std::string_view raw(std::size_t size);
  // A rule between fields. If it does not hold, that counts as a bad field.
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
