// SPDX-License-Identifier: Apache-2.0
#include "metadata/rescue/log_records.h"

#include <algorithm>

namespace nacre::metadata {

namespace {

constexpr std::uint64_t block_size_bytes = 32u << 10;
constexpr std::size_t header_size_bytes = 7;
enum : unsigned char { whole = 1, first = 2, middle = 3, last = 4 };

}  // namespace

void LogRecords::add(std::string_view piece) {
  bytes_ += piece;
  parse();
}

void LogRecords::skip(std::uint64_t size) {
  position_ += bytes_.size() + size;
  bytes_.clear();
  record_.clear();
  is_within_ = false;
}

void LogRecords::parse() {
  std::size_t at = 0;
  for (;;) {
    const std::uint64_t place = (position_ + at) % block_size_bytes;
    const std::uint64_t left = block_size_bytes - place;
    if (left < header_size_bytes) {
      if (bytes_.size() - at < left) break;
      at += left;
      continue;
    }
    if (bytes_.size() - at < header_size_bytes) break;
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes_[at + i]); };
    const std::size_t size = byte(4) | static_cast<std::size_t>(byte(5)) << 8;
    const unsigned char kind = byte(6);
    if (kind < whole || kind > last || size > left - header_size_bytes) {
      at = bytes_.size();  // nothing says where the next fragment begins
      is_within_ = false;
      break;
    }
    if (bytes_.size() - at < header_size_bytes + size) break;
    const auto fragment = std::string_view(bytes_).substr(at + header_size_bytes, size);
    at += header_size_bytes + size;
    const bool begins = kind == whole || kind == first;
    if (begins) record_.clear();
    if (begins || is_within_) record_ += fragment;
    const bool is_known = begins || is_within_;
    is_within_ = is_known && (kind == first || kind == middle);
    if (is_known && (kind == whole || kind == last)) {
      records_.push_back(std::move(record_));
      record_.clear();
    }
  }
  bytes_.erase(0, at);
  position_ += at;
}

}  // namespace nacre::metadata
