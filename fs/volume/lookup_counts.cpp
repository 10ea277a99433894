// SPDX-License-Identifier: Apache-2.0
//
//   word    63 … 16  inode number     15 … 0  count, 1 at least, so that no word is 0
#include "fs/volume/lookup_counts.h"

#include <algorithm>
#include <utility>

#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::InodeNumber;

namespace {

constexpr std::uint64_t number_max = ~std::uint64_t{0} >> LookupCounts::count_bits;

// This share of the places may be in use; more would make probing long. With 7 in 8 places used,
// the search for a number that is not there looks at 33 places. These are 5 cache lines.
constexpr std::size_t fill_numerator = 7;
constexpr std::size_t fill_denominator = 8;
constexpr std::size_t capacity_min = 16;

std::uint64_t word_of(std::uint64_t number, std::uint64_t count) {
  return number << LookupCounts::count_bits | count;
}
std::uint64_t number_of(std::uint64_t word) {
  return word >> LookupCounts::count_bits;
}
std::uint64_t count_of(std::uint64_t word) {
  return word & LookupCounts::count_max;
}
bool fits(std::uint64_t number, std::uint64_t count) {
  return number <= number_max && count <= LookupCounts::count_max;
}

}  // namespace

// The upper half of a product spreads consecutive numbers over all places (Knuth, 6.4).
std::size_t LookupCounts::home_of(std::uint64_t word) const {
  const std::uint64_t hash = number_of(word) * 0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>((hash >> 32) * words_.size() >> 32);
}

std::size_t LookupCounts::find(std::uint64_t number) const {
  if (word_count_ == 0 || number > number_max) return words_.size();
  for (std::size_t at = home_of(word_of(number, 1)); words_[at] != 0;) {
    if (number_of(words_[at]) == number) return at;
    if (++at == words_.size()) at = 0;
  }
  return words_.size();
}

void LookupCounts::place(std::uint64_t word) {
  std::size_t at = home_of(word);
  while (words_[at] != 0) {
    if (++at == words_.size()) at = 0;
  }
  words_[at] = word;
}

void LookupCounts::resize(std::size_t capacity) {
  std::vector<std::uint64_t> before(capacity, 0);
  before.swap(words_);
  for (const std::uint64_t word : before) {
    if (word != 0) place(word);
  }
}

void LookupCounts::insert(InodeNumber number, std::uint64_t count) {
  NACRE_CHECK(count > 0, "inode {} is kept for no lookup", number.value);
  if (!fits(number.value, count)) {
    large_.emplace(number.value, count);
    return;
  }
  if ((word_count_ + 1) * fill_denominator > words_.size() * fill_numerator) {
    resize(std::max(capacity_min, words_.size() + words_.size() / 4));
  }
  place(word_of(number.value, count));
  ++word_count_;
}

// Closes the gap (Knuth, 6.4, algorithm R): each word behind it that may stand there moves up.
void LookupCounts::erase(std::size_t gap) {
  const std::size_t capacity = words_.size();
  for (std::size_t at = gap;;) {
    if (++at == capacity) at = 0;
    if (words_[at] == 0) break;
    const std::size_t from_home = (at + capacity - home_of(words_[at])) % capacity;
    const std::size_t from_gap = (at + capacity - gap) % capacity;
    if (from_home < from_gap) continue;
    words_[gap] = words_[at];
    gap = at;
  }
  words_[gap] = 0;
  --word_count_;
  if (capacity > capacity_min && word_count_ < capacity / 4) {
    resize(std::max(capacity_min, capacity / 2));
  }
}

std::optional<std::uint64_t> LookupCounts::take(InodeNumber number) {
  if (const std::size_t at = find(number.value); at != words_.size()) {
    const std::uint64_t count = count_of(words_[at]);
    erase(at);
    return count;
  }
  const auto found = large_.find(number.value);
  if (found == large_.end()) return std::nullopt;
  const std::uint64_t count = found->second;
  large_.erase(found);
  return count;
}

bool LookupCounts::subtract(InodeNumber number, std::uint64_t count) {
  const std::size_t at = find(number.value);
  if (at == words_.size()) {
    const auto left = take(number);
    if (!left || *left <= count) return false;
    insert(number, *left - count);
    return true;
  }
  if (count_of(words_[at]) > count) {
    words_[at] -= count;
    return true;
  }
  erase(at);
  return false;
}

void LookupCounts::clear() {
  words_ = {};
  word_count_ = 0;
  large_.clear();
}

std::size_t LookupCounts::memory_bytes() const {
  // An entry of the map takes about this: a node, its links and its bucket.
  constexpr std::size_t large_bytes = 64;
  return words_.capacity() * sizeof words_[0] + large_.size() * large_bytes;
}

}  // namespace nacre::fs
