// SPDX-License-Identifier: Apache-2.0
// How often the kernel looked up each of very many inodes. An inode takes 8 bytes, and free places
// add at most a quarter. The counts are in a hash table of words that each hold a number and its
// count, with linear probing. A removal closes its gap at once, so the table never fills up with
// deletion marks. It grows and shrinks with its content.
//
// Not thread-safe. The only failure is a lack of memory (std::bad_alloc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "metadata/format/rows.h"

namespace nacre::fs {

class LookupCounts {
 public:
  // In a word, the lowest bits are the count.
  static constexpr unsigned count_bits = 16;
  static constexpr std::uint64_t count_max = (1u << count_bits) - 1;

  // The number has no count yet, and count > 0.
  void insert(metadata::InodeNumber number, std::uint64_t count);
  // Returns the count and no longer keeps it. Returns none if there was none.
  std::optional<std::uint64_t> take(metadata::InodeNumber number);
  // Subtracts count and returns whether lookups are left. A count of 0 is removed.
  bool subtract(metadata::InodeNumber number, std::uint64_t count);
  void clear();
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const std::uint64_t word : words_) {
      if (word != 0) visit(metadata::InodeNumber{word >> count_bits}, word & count_max);
    }
    for (const auto& [number, count] : large_)
      visit(metadata::InodeNumber{number}, count);
  }

  std::size_t size() const { return word_count_ + large_.size(); }
  // The bytes taken from the allocator.
  std::size_t memory_bytes() const;

 private:
  std::size_t home_of(std::uint64_t word) const;
  std::size_t find(std::uint64_t number) const;  // words_.size() if it is not there
  void place(std::uint64_t word);
  void erase(std::size_t at);
  void resize(std::size_t capacity);

  std::vector<std::uint64_t> words_;  // 0: a free place
  std::size_t word_count_ = 0;
  // Numbers and counts that do not fit into a word.
  std::unordered_map<std::uint64_t, std::uint64_t> large_;
};

}  // namespace nacre::fs
