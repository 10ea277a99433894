// SPDX-License-Identifier: Apache-2.0
// Blocks for plain bytes that are sealed in place, or opened into place. So bytes are copied once
// on their way from the kernel to the engine, or to a device, and once on their way back.
//
// A block holds one chunk. Blocks are parts of slabs, which are arenas of the engine (memory that
// devices reach, if there are devices). The lowest free block is given out first, so chunks that
// are written one after the other lie next to each other, and slabs at the end become empty. Empty
// slabs stay until trim(), or until there are more of them than allowed: memory that is new to a
// process, or to a virtual machine, takes longer to get than the work that is done with it.
//
// Thread-safe. The engine outlives it, and it outlives its blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/engine.h"

namespace nacre::fs {

class PlainMemory {
 public:
  PlainMemory(engine::Engine& engine, std::size_t block_size_bytes,
              std::size_t empty_slab_count_max = SIZE_MAX);
  ~PlainMemory();

  std::size_t block_size_bytes() const { return block_size_bytes_; }
  // nullptr if there is no memory.
  Byte* take() noexcept;
  // A block for this many bytes, if they fill one. If the count of empty slabs is bounded, a block
  // also for fewer bytes while more blocks are free than a slab has, since nothing else would use
  // them. Otherwise nullptr.
  Byte* take_for(std::size_t size) noexcept;
  // Returns false if the block is not of this memory.
  bool give_back(Byte* block) noexcept;

  // Returns slabs to the system if no block of them was taken for this long.
  void trim(std::chrono::milliseconds empty_for);

  // The slab in which those bytes lie; empty if they lie in none.
  MutableByteView slab_of(ByteView bytes) const;

  struct Stats {
    std::size_t slab_count = 0;
    std::size_t block_count = 0;  // taken blocks
  };
  Stats stats() const;
  bool is_empty() const;  // no slabs

  static constexpr std::size_t slab_size_bytes = 32u << 20;

 private:
  struct Slab;

  // The caller holds mutex_.
  Slab* slab_at(const Byte* place) const NACRE_REQUIRES(mutex_);
  Byte* take_any() noexcept NACRE_REQUIRES(mutex_);

  engine::Engine& engine_;
  const std::size_t block_size_bytes_;
  const std::size_t blocks_per_slab_;
  const std::size_t empty_slab_count_max_;

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Slab>> slabs_ NACRE_GUARDED_BY(mutex_);
  std::size_t free_count_ NACRE_GUARDED_BY(mutex_) = 0;  // blocks
};

// Bytes that grow at their end. They lie in a block if exactly a block's room is asked for, or if
// there is a block to spare (take_for); otherwise on the heap. (A vector with an allocator copies
// byte after byte.) Movable; not thread-safe.
class PlainBytes {
 public:
  // memory outlives this. If it is null, only the heap is used.
  explicit PlainBytes(PlainMemory* memory = nullptr) : memory_(memory) {}
  PlainBytes(ByteView bytes, PlainMemory* memory) : memory_(memory) { append(bytes); }
  PlainBytes(const PlainBytes& other) : PlainBytes(ByteView(other), other.memory_) {}
  PlainBytes(PlainBytes&& other) noexcept
      : memory_(other.memory_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  PlainBytes& operator=(PlainBytes other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~PlainBytes() { release(); }

  operator ByteView() const { return {data_, size_}; }
  Byte* data() { return data_; }
  const Byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t capacity() const { return capacity_; }

  void reserve(std::size_t capacity);
  // The values of added bytes are undefined.
  void resize(std::size_t size) {
    reserve(size);
    size_ = size;
  }
  void append(ByteView bytes);
  // size is at most the current size. If less than half of the room is used, the rest is given
  // back.
  void shrink(std::size_t size) noexcept;

 private:
  void release() noexcept;

  PlainMemory* memory_;
  Byte* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace nacre::fs
