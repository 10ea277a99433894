// SPDX-License-Identifier: Apache-2.0
#include "fs/store/plain_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "gpu_engine/base/check.h"

namespace nacre::fs {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t word_bits = std::numeric_limits<std::uint64_t>::digits;

}  // namespace

struct PlainMemory::Slab {
  engine::Arena arena;
  std::vector<std::uint64_t> free;  // a bit for each block
  std::size_t taken_count = 0;
  std::size_t first_word = 0;  // no block before it is free
  Clock::time_point empty_since;

  bool holds(const Byte* place) const {
    return place >= arena.data() && place < arena.data() + arena.size();
  }
  std::size_t take_lowest() {
    while (free[first_word] == 0)
      ++first_word;
    std::uint64_t& word = free[first_word];
    const auto bit = static_cast<std::size_t>(std::countr_zero(word));
    word &= word - 1;
    ++taken_count;
    return first_word * word_bits + bit;
  }
  void give_back(std::size_t block) {
    const std::uint64_t bit = std::uint64_t{1} << (block % word_bits);
    NACRE_CHECK((free[block / word_bits] & bit) == 0, "block {} of a slab is given back twice",
                block);
    free[block / word_bits] |= bit;
    first_word = std::min(first_word, block / word_bits);
    if (--taken_count == 0) empty_since = Clock::now();
  }
};

PlainMemory::PlainMemory(engine::Engine& engine, std::size_t block_size_bytes,
                         std::size_t empty_slab_count_max)
    : engine_(engine),
      block_size_bytes_(block_size_bytes),
      blocks_per_slab_(std::max<std::size_t>(1, slab_size_bytes / block_size_bytes)),
      empty_slab_count_max_(empty_slab_count_max) {}

PlainMemory::~PlainMemory() = default;

Byte* PlainMemory::take() noexcept {
  const LockGuard lock(mutex_);
  return take_any();
}

Byte* PlainMemory::take_for(std::size_t size) noexcept {
  if (size == block_size_bytes_) return take();
  if (size > block_size_bytes_ || empty_slab_count_max_ == SIZE_MAX) return nullptr;
  const LockGuard lock(mutex_);
  return free_count_ > blocks_per_slab_ ? take_any() : nullptr;
}

Byte* PlainMemory::take_any() noexcept {
  auto slab = std::ranges::find_if(
      slabs_, [&](const auto& one) { return one->taken_count < blocks_per_slab_; });
  if (slab == slabs_.end()) {
    try {
      auto arena = engine_.allocate(blocks_per_slab_ * block_size_bytes_);
      if (!arena) return nullptr;
      // Huge pages that are new to a virtual machine take longer than they save: the first file of
      // a fresh mount takes a third longer.
      madvise(arena->data(), arena->size(), MADV_NOHUGEPAGE);
      auto made = std::make_unique<Slab>();
      made->arena = std::move(*arena);
      made->free.assign((blocks_per_slab_ + word_bits - 1) / word_bits, ~std::uint64_t{0});
      if (const std::size_t last = blocks_per_slab_ % word_bits; last != 0)
        made->free.back() = (std::uint64_t{1} << last) - 1;
      slab = slabs_.insert(slabs_.end(), std::move(made));
      free_count_ += blocks_per_slab_;
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  --free_count_;
  return (*slab)->arena.data() + (*slab)->take_lowest() * block_size_bytes_;
}

bool PlainMemory::give_back(Byte* block) noexcept {
  std::unique_ptr<Slab> surplus;  // freed without the mutex, since freeing wipes it
  const LockGuard lock(mutex_);
  Slab* const slab = slab_at(block);
  if (slab == nullptr) return false;
  const auto offset = static_cast<std::size_t>(block - slab->arena.data());
  NACRE_CHECK(offset % block_size_bytes_ == 0, "what is given back begins {} bytes into a slab",
              offset);
  slab->give_back(offset / block_size_bytes_);
  ++free_count_;
  if (slab->taken_count > 0) return true;
  const auto is_empty = [](const auto& one) { return one->taken_count == 0; };
  if (static_cast<std::size_t>(std::ranges::count_if(slabs_, is_empty)) > empty_slab_count_max_) {
    const auto place =
        std::ranges::find_if(slabs_, [&](const auto& one) { return one.get() == slab; });
    surplus = std::move(*place);
    slabs_.erase(place);
    free_count_ -= blocks_per_slab_;
  }
  return true;
}

void PlainMemory::trim(std::chrono::milliseconds empty_for) {
  std::vector<std::unique_ptr<Slab>> surplus;  // freed without the mutex, since freeing wipes them
  const LockGuard lock(mutex_);
  const auto until = Clock::now() - empty_for;
  for (auto& slab : slabs_) {
    if (slab->taken_count == 0 && slab->empty_since <= until) surplus.push_back(std::move(slab));
  }
  std::erase(slabs_, nullptr);
  free_count_ -= surplus.size() * blocks_per_slab_;
}

MutableByteView PlainMemory::slab_of(ByteView bytes) const {
  const LockGuard lock(mutex_);
  Slab* const slab = slab_at(bytes.data());
  return slab == nullptr ? MutableByteView()
                         : MutableByteView(slab->arena.data(), slab->arena.size());
}

bool PlainMemory::is_empty() const {
  const LockGuard lock(mutex_);
  return slabs_.empty();
}

PlainMemory::Stats PlainMemory::stats() const {
  const LockGuard lock(mutex_);
  Stats stats{.slab_count = slabs_.size()};
  for (const auto& slab : slabs_)
    stats.block_count += slab->taken_count;
  return stats;
}

PlainMemory::Slab* PlainMemory::slab_at(const Byte* place) const {
  const auto slab =
      std::ranges::find_if(slabs_, [&](const auto& one) { return one->holds(place); });
  return slab == slabs_.end() ? nullptr : slab->get();
}

void PlainBytes::reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  Byte* moved = memory_ == nullptr ? nullptr : memory_->take_for(capacity);
  if (moved != nullptr) capacity = memory_->block_size_bytes();
  if (moved == nullptr) moved = new Byte[capacity];
  if (size_ > 0) std::memcpy(moved, data_, size_);
  release();
  data_ = moved;
  capacity_ = capacity;
}

void PlainBytes::append(ByteView bytes) {
  if (bytes.empty()) return;
  const std::size_t size = size_ + bytes.size();
  if (size > capacity_) reserve(std::max(size, 2 * capacity_));
  std::memcpy(data_ + size_, bytes.data(), bytes.size());
  size_ = size;
}

void PlainBytes::shrink(std::size_t size) noexcept {
  size_ = size;
  if (2 * size >= capacity_) return;
  Byte* const smaller = new (std::nothrow) Byte[size];
  if (smaller == nullptr) return;
  std::memcpy(smaller, data_, size);
  release();
  data_ = smaller;
  capacity_ = size;
}

void PlainBytes::release() noexcept {
  if (data_ == nullptr) return;
  const bool may_be_block = memory_ != nullptr && capacity_ == memory_->block_size_bytes();
  if (!may_be_block || !memory_->give_back(data_)) delete[] data_;
}

}  // namespace nacre::fs
