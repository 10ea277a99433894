// SPDX-License-Identifier: Apache-2.0
// Expanded keys by their raw bytes, so that a key schedule is made once and not once a payload.
//
// Bounded: the key that was not used for longest goes first, and is wiped when the last payload
// that runs with it is done. Thread-safe; asked once for each key of a payload, never per message.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/cpu/expanded_key.h"

namespace nacre::engine {

class KeyCache {
 public:
  explicit KeyCache(std::size_t key_count_max) : key_count_max_(key_count_max) {}

  Result<KeyObject> get(const KeyUse& use, ByteView key);
  std::size_t size() const;
  // Forgets all of them: what no payload runs with is wiped before this returns, the rest by the
  // last one that does.
  void clear();

 private:
  struct Entry {
    std::uint64_t hash;
    KeyUse use;
    SecretBytes key;
    KeyObject expanded;
  };

  const std::size_t key_count_max_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the last used one in front
};

}  // namespace nacre::engine
