// SPDX-License-Identifier: Apache-2.0
// Memory for payloads: page-locked or ordinary, and wiped when it is freed.
#pragma once

#include <cstddef>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::engine {

// Owns memory that payloads point into. Engine::allocate() makes arenas, page-locked where a GPU is
// used. Move-only. The contents are wiped when freed.
class Arena {
 public:
  Arena() = default;  // no memory: data() is null
  // Takes over size bytes at data. release frees them, and is called once, after they were wiped.
  Arena(Byte* data, std::size_t size, void (*release)(Byte*, std::size_t))
      : data_(data), size_(size), release_(release) {}
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  // The same memory with another way to release it.
  static Arena adopt(Arena&& arena, void (*release)(Byte*, std::size_t));

  Byte* data() { return data_; }
  const Byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Byte* data_ = nullptr;
  std::size_t size_ = 0;
  void (*release_)(Byte*, std::size_t) = nullptr;
};

// Zeroed pages of the host, which core dumps leave out. An empty arena for size 0. Errors:
// out_of_memory.
Result<Arena> allocate_host_arena(std::size_t size_bytes);

}  // namespace nacre::engine
