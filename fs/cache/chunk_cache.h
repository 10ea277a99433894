// SPDX-License-Identifier: Apache-2.0
// Clean chunks in memory: decoded content by file, chunk and identity of the content, within a byte
// budget; the least recently used one is evicted first. The identity changes with the content that
// a row names, and not when a record only moves. Keys are compared whole. So stale content is never
// found, and nothing needs to be invalidated. The first reader that misses loads the chunk; other
// readers wait for that load.
//
// A chunk that was read from its front to its end is spent: the kernel has it in its page cache and
// will not ask again. Spent chunks are kept in a queue of a sixteenth of the budget. So a file that
// is read once does not evict chunks that others use again, and reuses the memory of its own
// chunks. A spent chunk that is found again becomes an ordinary one. (2Q: Johnson and Shasha,
// 1994.)
//
// A reader that needs a small part of a chunk, and could read this part alone, loads the whole
// chunk if the rest is likely to be used: until the budget is used up, and then while at least half
// of such reads find their chunk. Loading a chunk costs three parts more than needed, and saves
// each later read of a part. If such reads seldom hit, one miss in 32 still loads the chunk, so
// that the cache notices when they begin to.
//
// Thread-safe. Deadlock-free as long as each thread finishes its claimed loads before it waits.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fs/store/chunk_map.h"
#include "fs/store/content_id.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// Decoded bytes. Bytes past their end read as zeros. Immutable once they are in the cache.
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
  // A load that is under way.
  struct Load {
    Mutex mutex;
    ConditionVariable done;
    std::optional<Result<SharedContent>> result NACRE_GUARDED_BY(mutex);
  };
  // What the caller needs: the whole chunk, or a part that it could read alone.
  enum class Need : std::uint8_t { chunk, part };
  // The bytes [from, to) of the chunk, which the caller passes on.
  struct Taken {
    std::uint32_t from = 0, to = 0;
  };
  // One of these is set: content after a hit; claimed if the caller must load and then call
  // finish(); a load to wait for. None is set if the caller shall read its part alone.
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
  // For read-ahead: returns a load to finish(), or null if the chunk is here or being loaded. Does
  // not change the order of use.
  std::shared_ptr<Load> claim_ahead(const Key& key);

  struct Stats {
    std::uint64_t bytes = 0;  // bytes of memory
    std::uint64_t hits = 0, misses = 0;
    std::uint64_t parts = 0;        // misses that read only a part
    std::uint64_t spent_bytes = 0;  // the part of bytes that is spent
  };
  Stats stats() const;

 private:
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return (key.inode.value * 0x9E3779B97F4A7C15ull) ^ (key.index.value * 0xC2B2AE3D27D4EB4Full) ^
             key.content.hash();
    }
  };
  // Pointers to the keys in the entries, which stay in place as long as the entry exists.
  using Order = std::list<const Key*>;
  struct Entry {
    SharedContent content;
    Order::iterator place;        // in order or in spent
    std::uint32_t taken_end = 0;  // all bytes before it were read
    bool is_spent = false;
    bool was_found_spent = false;  // it was used again, so it does not become spent a second time
  };
  // Evicted contents. They are freed without the shard's mutex, because freed memory is wiped.
  using Dropped = std::vector<SharedContent>;
  using Entries = std::unordered_map<Key, Entry, KeyHash>;
  struct Shard {
    mutable Mutex mutex;
    Entries entries NACRE_GUARDED_BY(mutex);
    std::unordered_map<Key, std::shared_ptr<Load>, KeyHash> loads NACRE_GUARDED_BY(mutex);
    Order order NACRE_GUARDED_BY(mutex);  // most recent first, as in spent
    Order spent NACRE_GUARDED_BY(mutex);
    std::uint64_t bytes NACRE_GUARDED_BY(mutex) = 0;  // of all entries
    std::uint64_t spent_bytes NACRE_GUARDED_BY(mutex) = 0;
    std::uint64_t hits NACRE_GUARDED_BY(mutex) = 0;
    std::uint64_t misses NACRE_GUARDED_BY(mutex) = 0;
    std::uint64_t parts NACRE_GUARDED_BY(mutex) = 0;
    bool is_full NACRE_GUARDED_BY(mutex) = false;  // an entry had to be evicted
    // Hits among the last reads of parts, in units of 1/hit_rate_one.
    std::uint32_t hit_rate NACRE_GUARDED_BY(mutex) = 0;
    // Reads of parts since a chunk was loaded for one.
    std::uint32_t part_run NACRE_GUARDED_BY(mutex) = 0;
  };
  static constexpr std::uint32_t hit_rate_one = 1u << 16;
  static constexpr std::uint32_t hit_rate_memory = 128;  // number of reads, approximately
  static constexpr std::uint32_t part_run_max = 31;
  // After a miss of a part: whether the part is read alone.
  static bool passes(Shard& shard) NACRE_REQUIRES(shard.mutex);
  static void use(Shard& shard, Entries::value_type& found) NACRE_REQUIRES(shard.mutex);
  void take(Shard& shard, Entries::value_type& found, Taken taken, Dropped& dropped) const
      NACRE_REQUIRES(shard.mutex);
  void insert(Shard& shard, const Key& key, SharedContent content, Taken taken, Dropped& dropped)
      NACRE_REQUIRES(shard.mutex);
  static void erase(Shard& shard, Entries::iterator entry, Dropped& dropped)
      NACRE_REQUIRES(shard.mutex);
  static constexpr std::size_t shard_count = 8;
  // The memory of an entry in addition to its content and its key's identity.
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
