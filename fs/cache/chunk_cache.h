// SPDX-License-Identifier: Apache-2.0
// Clean chunks in memory: decoded content by (file, chunk, identity of the content), least recently
// used first out, within a byte budget. The identity changes with the content that a row names, and
// not when a record merely moves; keys are compared whole. So stale content is never found, and
// nothing needs to be invalidated. The first reader that misses loads; others wait for that load.
//
// A chunk that was taken from its front to its end is spent: the kernel has it in its page cache,
// and will not ask again. It waits in a queue for a sixteenth of the budget, so a file that is read
// once neither drives out what others come back for, nor makes memory that is new: what it needs
// next is what it needed just now. Who finds a spent chunk makes it one like others again. (2Q:
// Johnson and Shasha, 1994.)
//
// Who needs little of a chunk, and could read that alone, loads all of it as long as the rest is
// likely to be asked for while it is here: until the budget is used up, and then while at least
// half of such reads find their chunk. A chunk that is loaded costs three parts more than are
// needed, and saves as many reads of one part as come for it. Where they seldom do, one miss in 32
// still loads its chunk, so that the cache follows when they begin to.
//
// Thread-safe. Deadlock-free as long as each thread finishes what it claimed before it waits.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fs/store/chunk_map.h"
#include "fs/store/content_id.h"

namespace nacre::fs {

// Decoded bytes; what lies past their end reads as zeros. Immutable once they are in the cache.
using ChunkContent = PlainBytes;
using SharedContent = std::shared_ptr<const ChunkContent>;

class ChunkCache {
 public:
  struct Key {
    InodeNumber inode;
    ChunkIndex index;
    ContentId content;
    bool operator==(const Key&) const = default;
  };
  // A load that somebody is busy with.
  struct Load {
    std::mutex mutex;
    std::condition_variable done;
    std::optional<Result<SharedContent>> result;
  };
  // What the caller could read instead of the whole chunk.
  enum class Need : std::uint8_t { chunk, part };
  // The bytes [from, to) of the chunk, which the caller hands out.
  struct Taken {
    std::uint32_t from = 0, to = 0;
  };
  // One of: content (a hit); claimed (the caller loads, then calls finish()); load to wait for;
  // none of them, of a part alone: the caller reads that, for itself.
  struct Lookup {
    SharedContent content;
    bool claimed = false;
    std::shared_ptr<Load> load;
  };

  explicit ChunkCache(std::uint64_t budget_bytes);

  Lookup acquire(const Key& key, Need need, Taken taken);
  void finish(const Key& key, const std::shared_ptr<Load>& load, Result<SharedContent> result,
              Taken taken);
  Result<SharedContent> wait(const Key& key, Load& load, Taken taken);
  // Of who looks ahead: a load to finish(), or none where it is here or on its way. Changes no
  // order of use.
  std::shared_ptr<Load> claim_ahead(const Key& key);

  struct Stats {
    std::uint64_t bytes = 0;  // of memory
    std::uint64_t hits = 0, misses = 0;
    std::uint64_t parts = 0;        // of the misses: a part was read
    std::uint64_t spent_bytes = 0;  // of bytes
  };
  Stats stats() const;

 private:
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return (key.inode.value * 0x9E3779B97F4A7C15ull) ^ (key.index.value * 0xC2B2AE3D27D4EB4Full) ^
             key.content.hash();
    }
  };
  // Keys that lie in entries, where they stay as long as their entry does.
  using Order = std::list<const Key*>;
  struct Entry {
    SharedContent content;
    Order::iterator place;        // in order, or in spent
    std::uint32_t taken_end = 0;  // all before it was taken
    bool is_spent = false;
    bool was_found_spent = false;  // somebody came back, so it is not spent again
  };
  // Contents that go: without the shard's mutex, since memory that is freed is wiped.
  using Dropped = std::vector<SharedContent>;
  using Entries = std::unordered_map<Key, Entry, KeyHash>;
  struct Shard {
    mutable std::mutex mutex;
    Entries entries;
    std::unordered_map<Key, std::shared_ptr<Load>, KeyHash> loads;
    Order order;  // most recent first, as in spent
    Order spent;
    std::uint64_t bytes = 0, spent_bytes = 0;  // bytes: of all
    std::uint64_t hits = 0, misses = 0, parts = 0;
    bool is_full = false;        // something had to go
    std::uint32_t hit_rate = 0;  // of the last reads of parts, of hit_rate_one
    std::uint32_t part_run = 0;  // parts since a chunk was loaded for one
  };
  static constexpr std::uint32_t hit_rate_one = 1u << 16;
  static constexpr std::uint32_t hit_rate_memory = 128;  // reads, about
  static constexpr std::uint32_t part_run_max = 31;
  // After a miss of a part: read it alone.
  static bool passes(Shard& shard);
  // Under the shard's mutex:
  static void use(Shard& shard, Entries::value_type& found);
  void take(Shard& shard, Entries::value_type& found, Taken taken, Dropped& dropped) const;
  void insert(Shard& shard, const Key& key, SharedContent content, Taken taken, Dropped& dropped);
  static void erase(Shard& shard, Entries::iterator entry, Dropped& dropped);
  static constexpr std::size_t shard_count = 8;
  // What an entry costs on top of its content and of its key's identity.
  static constexpr std::uint64_t entry_overhead_bytes = 256;
  static constexpr std::uint64_t spent_divisor = 16;
  static std::uint64_t cost_of(const Entries::value_type& entry) {
    return entry.second.content->capacity() + entry.first.content.heap_size_bytes() +
           entry_overhead_bytes;
  }
  Shard& shard_of(const Key& key) {
    const std::size_t hash = KeyHash{}(key);
    return shards_[(hash ^ (hash >> 29)) % shard_count];
  }

  std::uint64_t shard_budget_bytes_;
  std::array<Shard, shard_count> shards_;
};

}  // namespace nacre::fs
