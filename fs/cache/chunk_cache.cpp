// SPDX-License-Identifier: Apache-2.0
// The cache of clean chunks: shards, each with its own lock, budget and order of use.
#include "fs/cache/chunk_cache.h"

#include <algorithm>
#include <new>
#include <utility>

#include "gpu_engine/base/check.h"

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

// Marks a found chunk as used: it becomes an ordinary one, and the last to be evicted.
void ChunkCache::use(Shard& shard, Entries::value_type& found) {
  Entry& entry = found.second;
  shard.order.splice(shard.order.begin(), entry.is_spent ? shard.spent : shard.order, entry.place);
  if (!entry.is_spent) return;
  entry.is_spent = false;
  entry.was_found_spent = true;
  shard.spent_bytes -= cost_of(found);
}

void ChunkCache::take(Shard& shard, Entries::value_type& found, Taken taken,
                      Dropped& dropped) const {
  Entry& entry = found.second;
  if (entry.was_found_spent || taken.from > entry.taken_end) return;
  entry.taken_end = std::max(entry.taken_end, taken.to);
  if (entry.taken_end < entry.content->size()) return;
  entry.is_spent = true;
  shard.spent.splice(shard.spent.begin(), shard.order, entry.place);
  shard.spent_bytes += cost_of(found);
  while (shard.spent_bytes > shard_budget_bytes_ / spent_divisor && shard.spent.size() > 1)
    erase(shard, shard.entries.find(*shard.spent.back()), dropped);
}

void ChunkCache::erase(Shard& shard, Entries::iterator entry, Dropped& dropped) {
  NACRE_CHECK(entry != shard.entries.end(), "one of {} chunks in a list is not in the cache",
              shard.order.size() + shard.spent.size());
  const std::uint64_t cost = cost_of(*entry);
  NACRE_CHECK(shard.bytes >= cost, "a chunk of {} bytes leaves a cache of {}", cost, shard.bytes);
  dropped.push_back(std::move(entry->second.content));
  shard.bytes -= cost;
  if (entry->second.is_spent) shard.spent_bytes -= cost;
  (entry->second.is_spent ? shard.spent : shard.order).erase(entry->second.place);
  shard.entries.erase(entry);
}

void ChunkCache::insert(Shard& shard, const Key& key, SharedContent content, Taken taken,
                        Dropped& dropped) {
  if (shard.entries.contains(key)) return;
  Order place{nullptr};
  const auto entry =
      shard.entries.emplace(key, Entry{.content = std::move(content), .place = place.begin()})
          .first;
  place.front() = &entry->first;
  shard.order.splice(shard.order.begin(), place);
  shard.bytes += cost_of(*entry);
  take(shard, *entry, taken, dropped);
  while (shard.bytes > shard_budget_bytes_) {
    if (shard.spent.empty()) shard.is_full = true;
    const Key* const next = shard.spent.empty() ? shard.order.back() : shard.spent.back();
    erase(shard, shard.entries.find(*next), dropped);
  }
}

std::shared_ptr<ChunkCache::Load> ChunkCache::claim_ahead(const Key& key) {
  Shard& shard = shard_of(key);
  const LockGuard lock(shard.mutex);
  if (shard.entries.contains(key) || shard.loads.contains(key)) return nullptr;
  ++shard.misses;
  return shard.loads.emplace(key, std::make_shared<Load>()).first->second;
}

ChunkCache::Lookup ChunkCache::acquire(const Key& key, Need need, Taken taken) {
  Shard& shard = shard_of(key);
  Dropped dropped;
  LockGuard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  const bool is_hit = found != shard.entries.end();
  if (need == Need::part) {
    shard.hit_rate -= shard.hit_rate / hit_rate_memory;
    if (is_hit) shard.hit_rate += hit_rate_one / hit_rate_memory;
  }
  if (is_hit) {
    ++shard.hits;
    Lookup lookup{.content = found->second.content};
    use(shard, *found);
    take(shard, *found, taken, dropped);
    return lookup;
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
                        Result<SharedContent> result, Taken taken) {
  Shard& shard = shard_of(key);
  Dropped dropped;
  try {
    const LockGuard lock(shard.mutex);
    const auto claimed = shard.loads.find(key);
    NACRE_CHECK(claimed != shard.loads.end() && claimed->second == load,
                "a load of chunk {} of inode {} ends that nobody has claimed", key.index.value,
                key.inode.value);
    shard.loads.erase(claimed);
    if (result) insert(shard, key, *result, taken, dropped);
  } catch (const std::bad_alloc&) {
    // Without memory the chunk is not kept, or another one is not evicted. Waiting threads get it
    // anyway.
  }
  {
    LockGuard lock(load->mutex);
    load->result = std::move(result);
  }
  load->done.notify_all();
}

Result<SharedContent> ChunkCache::wait(const Key& key, Load& load, Taken taken) {
  UniqueLock loading(load.mutex);
  load.done.wait(loading, [&]() NACRE_REQUIRES(load.mutex) { return load.result.has_value(); });
  Result<SharedContent> result = *load.result;
  loading.unlock();
  Shard& shard = shard_of(key);
  Dropped dropped;
  LockGuard lock(shard.mutex);
  const auto found = shard.entries.find(key);
  if (found != shard.entries.end() && !found->second.is_spent) take(shard, *found, taken, dropped);
  return result;
}

ChunkCache::Stats ChunkCache::stats() const {
  Stats sum;
  for (const Shard& shard : shards_) {
    LockGuard lock(shard.mutex);
    sum.bytes += shard.bytes;
    sum.hits += shard.hits;
    sum.misses += shard.misses;
    sum.parts += shard.parts;
    sum.spent_bytes += shard.spent_bytes;
  }
  return sum;
}

}  // namespace nacre::fs
