// SPDX-License-Identifier: Apache-2.0
// Finds expanded keys by their raw bytes, so that a key schedule is made once instead of once for
// each payload.
//
// Holds at most key_count_max keys. The least recently used one is dropped first, and is wiped when
// the last payload that runs with it has ended. Thread-safe. get() is called once for each key of a
// payload, not for each message.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/cpu/expanded_key.h"

namespace nacre::engine {

class KeyCache {
 public:
  explicit KeyCache(std::size_t key_count_max) : key_count_max_(key_count_max) {}

  Result<KeyObject> get(const KeyUse& use, ByteView key);
  std::size_t size() const;
  // Forgets all keys. A key that no payload is using is wiped before this returns, any other when
  // the last payload that uses it ends.
  void clear();

 private:
  struct Entry {
    std::uint64_t hash;
    KeyUse use;
    SecretBytes key;
    KeyObject expanded;
  };

  const std::size_t key_count_max_;
  mutable Mutex mutex_;
  std::list<Entry> entries_ NACRE_GUARDED_BY(mutex_);  // most recently used first
};

}  // namespace nacre::engine
