// SPDX-License-Identifier: Apache-2.0
// Memory whose end is followed by a page that may not be touched: one byte too far is a fault in
// any build.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

class GuardedMemory {
 public:
  explicit GuardedMemory(std::size_t size_max)
      : size_(round_up(size_max, page_size_bytes) + page_size_bytes) {
    void* pages = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(pages, MAP_FAILED);
    start_ = static_cast<Byte*>(pages);
    mprotect(start_ + size_ - page_size_bytes, page_size_bytes, PROT_NONE);
  }
  ~GuardedMemory() { munmap(start_, size_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  MutableByteView last(std::size_t size) { return {start_ + size_ - page_size_bytes - size, size}; }

 private:
  static constexpr std::size_t page_size_bytes = 4096;
  std::size_t size_;
  Byte* start_ = nullptr;
};

}  // namespace nacre::engine
