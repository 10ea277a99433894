// SPDX-License-Identifier: Apache-2.0
// One file of a MemoryBacking: what it holds now, what is durable, and the changes between the two.
// Not thread-safe: the lock of the MemoryBacking covers it.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "tests/support/sparse_bytes.h"

namespace nacre::tests {

// How much of what is not durable survives.
enum class Survival : std::uint8_t { nothing, everything, random };

class MemoryFile {
 public:
  MemoryFile() = default;
  explicit MemoryFile(SparseBytes durable) : now_(durable.share()), durable_(std::move(durable)) {}

  std::uint64_t size() const { return now_.size(); }
  std::size_t read(std::uint64_t offset, MutableByteView out) const {
    return now_.read(offset, out);
  }
  // A bad block of the medium, of which no byte can be read any more; copies have none.
  void set_bad_block(std::uint64_t offset) { bad_block_ = offset / block_size_bytes; }
  bool is_readable(std::uint64_t offset, std::uint64_t size) const {
    return !bad_block_ || offset >= (*bad_block_ + 1) * block_size_bytes ||
           offset + size <= *bad_block_ * block_size_bytes;
  }
  void write(std::uint64_t offset, ByteView bytes);
  void truncate(std::uint64_t size);
  // Makes all changes durable except those that an earlier failed sync covered.
  void sync();
  // Notes a sync that failed. No later sync makes the changes so far durable.
  void fail_sync();

  // The content that power loss leaves.
  SparseBytes survive(Survival survival, std::mt19937_64& random);

 private:
  enum class Fate : std::uint8_t {
    pending,   // the next sync makes it durable
    doubtful,  // covered by a failed sync: it may or may not survive, whatever follows
    certain,   // durable, but made after a doubtful change
  };
  struct Change {
    Fate fate = Fate::pending;
    bool is_truncation = false;
    std::uint64_t offset = 0;       // of a truncation: the new size
    std::uint64_t touched_end = 0;  // now_ and durable_ may differ in [touched_begin, touched_end)
    std::uint64_t touched_begin = 0;
    Bytes bytes;
  };

  static void apply(SparseBytes& content, const Change& change);
  static void apply_torn(SparseBytes& content, const Change& change, std::mt19937_64& random);

  static constexpr std::uint64_t block_size_bytes = 512;
  std::optional<std::uint64_t> bad_block_;  // its number
  SparseBytes now_;
  SparseBytes durable_;
  std::vector<Change> changes_;  // lead from durable_ to now_
};

}  // namespace nacre::tests
