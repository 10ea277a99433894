// SPDX-License-Identifier: Apache-2.0
#include "metadata/format/row_codec.h"

#include <fmt/format.h>

namespace nacre::metadata {

void RowWriter::number(std::uint64_t value) {
  while (value >= 0x80) {
    byte(static_cast<std::uint8_t>(value | 0x80));
    value >>= 7;
  }
  byte(static_cast<std::uint8_t>(value));
}

void RowWriter::signed_number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  number(value < 0 ? ~(bits << 1) : bits << 1);
}

RowReader::RowReader(std::string_view value, std::string_view what) : value_(value), what_(what) {
  if (byte(row_version) != row_version) failed_ = true;
}

std::uint8_t RowReader::byte(std::uint8_t most) {
  if (failed_ || at_ >= value_.size()) {
    failed_ = true;
    return 0;
  }
  const auto value = static_cast<std::uint8_t>(value_[at_]);
  if (value > most) {
    failed_ = true;
    return 0;
  }
  ++at_;
  return value;
}

std::uint64_t RowReader::number(std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !failed_; shift += 7) {
    const std::uint8_t part = byte(0xff);
    // The tenth byte may hold only the topmost bit. A last byte of zero is refused: each number has
    // one encoding, the shortest.
    if ((shift == 63 && part > 1) || (shift > 0 && part == 0)) failed_ = true;
    value |= std::uint64_t{part & 0x7fu} << shift;
    if ((part & 0x80) == 0) break;
  }
  if (value < least || value > most) failed_ = true;
  return failed_ ? 0 : value;
}

std::int64_t RowReader::signed_number() {
  const std::uint64_t zigzag = number();
  return static_cast<std::int64_t>((zigzag >> 1) ^ (~(zigzag & 1) + 1));
}

std::string_view RowReader::raw(std::size_t size) {
  if (failed_ || size > value_.size() - at_) {
    failed_ = true;
    return {};
  }
  at_ += size;
  return value_.substr(at_ - size, size);
}

Result<void> RowReader::finish() const {
  if (!failed_ && at_ == value_.size()) return {};
  return fail(ErrorCode::corrupt,
              fmt::format("the {} row is malformed at byte {} of {}", what_, at_, value_.size()));
}

}  // namespace nacre::metadata
