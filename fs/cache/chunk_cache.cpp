// SPDX-License-Identifier: Apache-2.0
// The cache of clean chunks: shards, each with its own lock, budget and order of use.
#include "fs/cache/chunk_cache.h"

#include <utility>

namespace nacre::fs {

ChunkCache::ChunkCache(std::uint64_t budget_bytes)
    : shard_budget_bytes_(budget_bytes / shard_count) {}

bool ChunkCache::passes(Shard& shard) {
  if (!shard.is_full || shard.hit_rate >= hit_rate_one / 2) return false;
  if (shard.part_run < part_run_max) {
    ++shard.part_run;
    return true;
  }
  shard.part_run = 0;
  return false;
}

ChunkCache::Lookup ChunkCache::acquire(const Key& key, Need need) {
  Shard& shard = shard_of(key);
  std::lock_guard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  const bool is_hit = found != shard.entries.end();
  if (need == Need::part) {
    shard.hit_rate -= shard.hit_rate / hit_rate_memory;
    if (is_hit) shard.hit_rate += hit_rate_one / hit_rate_memory;
  }
  if (is_hit) {
    shard.order.splice(shard.order.begin(), shard.order, found->second.place);
    ++shard.hits;
    return Lookup{.content = found->second.content};
  }
  ++shard.misses;
  if (const auto load = shard.loads.find(key); load != shard.loads.end()) {
    return Lookup{.load = load->second};
  }
  if (need == Need::part && passes(shard)) {
    ++shard.parts;
    return {};
  }
  auto load = shard.loads.emplace(key, std::make_shared<Load>()).first->second;
  return Lookup{.claimed = true, .load = std::move(load)};
}

void ChunkCache::finish(const Key& key, const std::shared_ptr<Load>& load,
                        Result<SharedContent> result) {
  Shard& shard = shard_of(key);
  {
    std::lock_guard lock(shard.mutex);
    shard.loads.erase(key);
    if (result) {
      const auto [place, added] = shard.entries.try_emplace(key);
      if (added) {
        shard.order.push_front(key);
        place->second = Entry{*result, shard.order.begin()};
        shard.bytes += (*result)->size + entry_overhead_bytes;
      }
      while (shard.bytes > shard_budget_bytes_ && !shard.order.empty()) {
        shard.is_full = true;
        const auto oldest = shard.entries.find(shard.order.back());
        shard.bytes -= oldest->second.content->size + entry_overhead_bytes;
        shard.entries.erase(oldest);
        shard.order.pop_back();
      }
    }
  }
  {
    std::lock_guard lock(load->mutex);
    load->result = std::move(result);
  }
  load->done.notify_all();
}

Result<SharedContent> ChunkCache::wait(Load& load) {
  std::unique_lock lock(load.mutex);
  load.done.wait(lock, [&] { return load.result.has_value(); });
  return *load.result;
}

ChunkCache::Stats ChunkCache::stats() const {
  Stats sum;
  for (const Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    sum.bytes += shard.bytes;
    sum.hits += shard.hits;
    sum.misses += shard.misses;
    sum.parts += shard.parts;
  }
  return sum;
}

}  // namespace nacre::fs
