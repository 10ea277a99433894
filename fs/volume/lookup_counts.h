// SPDX-License-Identifier: Apache-2.0
// How often the kernel looked up each of very many inodes: 8 bytes for an inode, and a quarter more
// for free places at the most. A hash table of words that each hold a number and its count, probed
// one place after the other; what is taken out is closed up at once, so that it never fills up with
// marks. It grows and shrinks with what it holds.
//
// Not thread-safe. Never fails but for want of memory (std::bad_alloc).
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
  // The number has no count yet; count > 0.
  void insert(metadata::InodeNumber number, std::uint64_t count);
  // The count, which is no longer kept; none where there was none.
  std::optional<std::uint64_t> take(metadata::InodeNumber number);
  // Subtracts count, and says whether lookups are left. A count of 0 is removed.
  bool subtract(metadata::InodeNumber number, std::uint64_t count);
  void clear();

  std::size_t size() const { return word_count_ + large_.size(); }
  // What it takes from the allocator.
  std::size_t memory_bytes() const;

 private:
  std::size_t home_of(std::uint64_t word) const;
  std::size_t find(std::uint64_t number) const;  // words_.size(): it is not there
  void place(std::uint64_t word);
  void erase(std::size_t at);
  void resize(std::size_t capacity);

  std::vector<std::uint64_t> words_;  // 0: free
  std::size_t word_count_ = 0;
  // What does not fit into a word.
  std::unordered_map<std::uint64_t, std::uint64_t> large_;
};

}  // namespace nacre::fs
