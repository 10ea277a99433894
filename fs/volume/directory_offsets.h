// SPDX-License-Identifier: Apache-2.0
// The place at which to go on in a listing, as a number of 31 bits. 32-bit programs get EOVERFLOW
// for any larger one (docs/KERNEL.md).
//
// A place in a directory is the hash after which to go on, a number of 63 bits. If a name is the
// last one with the upper 30 bits of its hash, these bits alone are its offset: a listing that goes
// on there goes on with the next greater ones. Other names get a ticket: the lower 30 bits of the
// place with a bit set above them, and an entry in a table of this process. Tickets are few: of a
// million names about 500 share their upper bits with another name. Each end of a piece of a long
// listing adds one. A place that was dropped from the table is found again in the directory by its
// lower bits.
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

  // The place behind a name of this hash. next is the hash of the name behind it: none if that is
  // not known, and past_all_hashes if there is no such name.
  static std::uint64_t place_behind(std::uint64_t hash, std::optional<std::uint64_t> next);
  static constexpr std::uint64_t past_all_hashes = ~std::uint64_t{0};

  // before is the offset of the name before. It is returned if another place has the same ticket.
  std::uint64_t offset_of(metadata::InodeNumber directory, std::uint64_t place,
                          std::uint64_t before);
  // Returns none if the offset is a ticket that is not in the table, or no longer in it.
  std::optional<std::uint64_t> place_of(metadata::InodeNumber directory, std::uint64_t offset);

  static bool is_ticket(std::uint64_t offset);
  // Whether the place behind a name of this hash has this ticket.
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
