// SPDX-License-Identifier: Apache-2.0
// A list in the order of use, searched from the front. A volume in use has one or two keys at work,
// so the search ends at once, and passing a few other keys costs less than making a key schedule.
#include "gpu_engine/cpu/key_cache.h"

#include <functional>
#include <string_view>

namespace nacre::engine {

Result<KeyObject> KeyCache::get(const KeyUse& use, ByteView key) {
  const std::uint64_t hash = std::hash<std::string_view>()(as_text(key));
  {
    const LockGuard lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->hash != hash || !(entry->use == use) ||
          !equal_constant_time(entry->key.view(), key))
        continue;
      entries_.splice(entries_.begin(), entries_, entry);
      return entry->expanded;
    }
  }
  // Two threads may both get here with the same key. The later entry is then a harmless duplicate,
  // which is dropped in time.
  NACRE_ASSIGN(KeyObject expanded, expand_key(use, key));
  const LockGuard lock(mutex_);
  entries_.push_front({hash, use, SecretBytes(key), expanded});
  if (entries_.size() > key_count_max_) entries_.pop_back();
  return expanded;
}

void KeyCache::clear() {
  std::list<Entry> forgotten;  // wiped after the lock is released
  const LockGuard lock(mutex_);
  forgotten.swap(entries_);
}

std::size_t KeyCache::size() const {
  const LockGuard lock(mutex_);
  return entries_.size();
}

}  // namespace nacre::engine
