// SPDX-License-Identifier: Apache-2.0
// Where to go on in a listing, as a number of 31 bits: programs of 32 bits get EOVERFLOW for any
// that is larger (docs/KERNEL.md).
//
// A place in a directory is the hash after which to go on, of 63 bits. Of the last name whose hash
// has some upper 30 bits these alone are the offset: whoever goes on there goes on at the next
// greater ones. Other names get a ticket: the lower 30 bits of the place with a bit above them, and
// a line in a table of this process. There are few: of a million names about 500 share their upper
// bits with another, and one more where a piece of a long listing ends. A place that was dropped
// from the table is found again by its lower bits in the directory.
//
// Thread-safe. Its mutex is a leaf.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "gpu_engine/base/mutex.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

class DirectoryOffsets {
 public:
  static constexpr std::uint64_t offset_dot_dot = 2;  // 0: the start, 1 and 2: "." and ".."
  static constexpr std::size_t ticket_count_max = 64u << 10;

  explicit DirectoryOffsets(std::size_t count_max = ticket_count_max) : count_max_(count_max) {}

  // The place behind a name of this hash; next: that of the name behind it, none where it is not
  // known, or past all hashes where there is none.
  static std::uint64_t place_behind(std::uint64_t hash, std::optional<std::uint64_t> next);
  static constexpr std::uint64_t past_all_hashes = ~std::uint64_t{0};

  // before: the offset of the name before, which two places share should their tickets be the same.
  std::uint64_t offset_of(metadata::InodeNumber directory, std::uint64_t place,
                          std::uint64_t before);
  // None: the offset is a ticket that is not in the table (any more).
  std::optional<std::uint64_t> place_of(metadata::InodeNumber directory, std::uint64_t offset);

  static bool is_ticket(std::uint64_t offset);
  // Whether the place behind a name of this hash has that ticket.
  static bool has_ticket(std::uint64_t hash, std::uint64_t ticket);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // directory, ticket
  struct HashOfKey {
    std::size_t operator()(const Key& key) const {
      return key.first * 0x9e37'79b9'7f4a'7c15u + key.second;
    }
  };

  const std::size_t count_max_;
  Mutex mutex_;
  std::unordered_map<Key, std::uint64_t, HashOfKey> places_ NACRE_GUARDED_BY(mutex_);
  std::deque<Key> oldest_first_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
