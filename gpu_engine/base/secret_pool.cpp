// SPDX-License-Identifier: Apache-2.0
// The slabs of the secret pool.
#include "gpu_engine/base/secret_pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "gpu_engine/base/mutex.h"

namespace nacre {
namespace {

constexpr std::size_t slab_count = secret_pool_size_bytes / secret_slab_size_bytes;
constexpr std::size_t page_size_bytes = 4096;
constexpr int smallest_shift = std::countr_zero(secret_block_size_bytes_min);
constexpr std::size_t block_class_count =
    std::countr_zero(secret_block_size_bytes_max) - smallest_shift + 1;
constexpr std::size_t slab_block_count_max = secret_slab_size_bytes / secret_block_size_bytes_min;
constexpr std::size_t slab_bitmap_words = slab_block_count_max / 64;
static_assert(slab_block_count_max % 64 == 0);

std::size_t block_class(std::size_t size) {
  const std::size_t block = std::bit_ceil(std::max(size, secret_block_size_bytes_min));
  return static_cast<std::size_t>(std::countr_zero(block) - smallest_shift);
}

constexpr std::size_t class_block_size(std::size_t index) {
  return secret_block_size_bytes_min << index;
}

Byte* map_pages(std::size_t size) {
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  madvise(pages, size, MADV_DONTDUMP);
  return static_cast<Byte*>(pages);
}

struct Slab {
  enum class State : std::uint8_t { untouched, free, used };
  State state = State::untouched;
  bool locked = false;
  std::uint8_t block_class = 0;
  std::uint16_t used_block_count = 0;
  std::array<std::uint64_t, slab_bitmap_words> used_blocks = {};
};

class SecretPool {
 public:
  SecretPool() : region_(map_pages(secret_pool_size_bytes)) {
    // The analysis does not follow a mutex from one of these functions to the next.
    pthread_atfork([]() NACRE_NO_THREAD_SAFETY_ANALYSIS { pool().mutex_.lock(); },
                   []() NACRE_NO_THREAD_SAFETY_ANALYSIS { pool().mutex_.unlock(); },
                   []() NACRE_NO_THREAD_SAFETY_ANALYSIS {
                     // A child does not inherit locks.
                     pool().lock_slabs_again();
                     pool().mutex_.unlock();
                   });
  }

  // Never destroyed: secrets of static lifetime may be freed after all our destructors.
  static SecretPool& pool() {
    static SecretPool* const instance = new SecretPool;
    return *instance;
  }

  // nullptr when the region is full.
  Byte* allocate(std::size_t size) {
    if (region_ == nullptr || size > secret_block_size_bytes_max) return nullptr;
    const std::size_t index = block_class(size);
    const LockGuard lock(mutex_);
    for (std::size_t slab = 0; slab < slab_count; ++slab) {
      if (slabs_[slab].state == Slab::State::used && slabs_[slab].block_class == index &&
          slabs_[slab].used_block_count < secret_slab_size_bytes / class_block_size(index))
        return take_block(slab);
    }
    for (std::size_t slab = 0; slab < slab_count; ++slab) {
      if (slabs_[slab].state == Slab::State::used) continue;
      open_slab(slab, index);
      return take_block(slab);
    }
    return nullptr;
  }

  bool owns(const Byte* data) const {
    return region_ != nullptr && data >= region_ && data < region_ + secret_pool_size_bytes;
  }

  void free(Byte* data) {
    const auto offset = static_cast<std::size_t>(data - region_);
    const LockGuard lock(mutex_);
    Slab& slab = slabs_[offset / secret_slab_size_bytes];
    const std::size_t block = offset % secret_slab_size_bytes / class_block_size(slab.block_class);
    slab.used_blocks[block / 64] &= ~(1ull << (block % 64));
    if (--slab.used_block_count == 0) slab.state = Slab::State::free;
  }

  SecretPoolStats stats() {
    const LockGuard lock(mutex_);
    SecretPoolStats stats = {};
    for (const Slab& slab : slabs_) {
      stats.used_slab_count += slab.state == Slab::State::used;
      stats.locked_slab_count += slab.locked;
    }
    return stats;
  }

 private:
  Byte* slab_data(std::size_t slab) const { return region_ + slab * secret_slab_size_bytes; }

  void open_slab(std::size_t index, std::size_t of_class) NACRE_REQUIRES(mutex_) {
    Slab& slab = slabs_[index];
    if (!slab.locked) slab.locked = mlock(slab_data(index), secret_slab_size_bytes) == 0;
    slab.state = Slab::State::used;
    slab.block_class = static_cast<std::uint8_t>(of_class);
  }

  Byte* take_block(std::size_t index) NACRE_REQUIRES(mutex_) {
    Slab& slab = slabs_[index];
    // Blocks past the slab's last one are never reached: the caller has seen that a block below is
    // free.
    for (std::size_t word = 0; word < slab_bitmap_words; ++word) {
      const int bit = std::countr_one(slab.used_blocks[word]);
      if (bit == 64) continue;
      slab.used_blocks[word] |= 1ull << bit;
      ++slab.used_block_count;
      const std::size_t block = word * 64 + static_cast<std::size_t>(bit);
      return slab_data(index) + block * class_block_size(slab.block_class);
    }
    return nullptr;
  }

  void lock_slabs_again() NACRE_REQUIRES(mutex_) {
    for (std::size_t slab = 0; slab < slab_count; ++slab) {
      if (slabs_[slab].state != Slab::State::untouched)
        slabs_[slab].locked = mlock(slab_data(slab), secret_slab_size_bytes) == 0;
    }
  }

  Mutex mutex_;
  Byte* const region_;
  std::array<Slab, slab_count> slabs_ NACRE_GUARDED_BY(mutex_) = {};
};

}  // namespace

Byte* allocate_secret(std::size_t size) {
  if (Byte* block = SecretPool::pool().allocate(size)) return block;
  const std::size_t pages = round_up(size, page_size_bytes);
  Byte* data = map_pages(pages);
  if (data == nullptr) throw std::bad_alloc();
  // Past the limit the secret is not locked, but is still kept out of core dumps and wiped.
  static_cast<void>(mlock(data, pages));
  return data;
}

void free_secret(Byte* data, std::size_t size) {
  wipe({data, size});
  if (SecretPool::pool().owns(data)) {
    SecretPool::pool().free(data);
  } else {
    munmap(data, round_up(size, page_size_bytes));
  }
}

SecretPoolStats secret_pool_stats() {
  return SecretPool::pool().stats();
}

}  // namespace nacre
