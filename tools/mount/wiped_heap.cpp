// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/wiped_heap.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/wiped_stack.h"

namespace nacre::tools {

namespace {

constexpr int pattern = 0xa5;
constexpr unsigned heap_count_max = 4;
constexpr unsigned thread_count = std::max(heap_count_max, kept_stack_count_max + 1);
// Below the size from which malloc takes pages of their own, which it gives back when they are
// freed.
constexpr std::size_t size_bytes_max = 64u << 10;
constexpr std::size_t size_bytes_of_every_step = 1032;  // from here down each size is taken
constexpr std::size_t size_bytes_min = 24;
constexpr std::size_t size_step_bytes = 16;
constexpr std::size_t batch_bytes = 1u << 20;
constexpr std::size_t growth_bytes_max = 64u << 20;

struct Piece {
  Piece* next;
};

std::size_t next_smaller(std::size_t size) {
  return size > size_bytes_of_every_step ? std::max(size * 3 / 4, size_bytes_of_every_step)
                                         : size - size_step_bytes;
}

// Takes pieces of each size, the largest first, until the heap has no free one of that size and
// grows. So the smaller ones fill what the larger ones leave.
void overwrite_free_pieces() {
#ifndef NACRE_SANITIZER  // their malloc tells no sizes
  Piece* pieces = nullptr;
  const std::size_t begun_with = mallinfo2().arena;
  for (std::size_t size = size_bytes_max; size >= size_bytes_min; size = next_smaller(size)) {
    const std::size_t before = mallinfo2().arena;
    if (before > begun_with + growth_bytes_max) break;
    do {
      for (std::size_t taken = 0; taken < batch_bytes; taken += size) {
        void* const memory = std::malloc(size);
        if (memory == nullptr) break;
        std::memset(memory, 0, malloc_usable_size(memory));
        pieces = new (memory) Piece{pieces};
      }
    } while (mallinfo2().arena == before);
  }
  while (pieces != nullptr)
    std::free(std::exchange(pieces, pieces->next));
#endif
}

// A thread takes its memory from one heap, and a new one from the next in turn. So as many threads
// as there are heaps, all there at the same time, get at each. They also get all stacks that ended
// threads left.
void overwrite_heaps_and_stacks() {
  Mutex one_at_a_time;
  std::latch all_are_done(thread_count);
  std::array<std::thread, thread_count> threads;
  const auto work = [&](bool with_heap) {
    wipe_stack();
    if (with_heap) {
      const LockGuard turn(one_at_a_time);
      overwrite_free_pieces();
    }
    all_are_done.arrive_and_wait();
  };
  for (unsigned i = 0; i < thread_count; ++i) {
    try {
      threads[i] = std::thread(work, i < heap_count());
    } catch (const std::system_error&) {
      all_are_done.count_down();
    }
  }
  for (auto& thread : threads) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace

unsigned heap_count() {
  return std::clamp(std::thread::hardware_concurrency() / 2, 1u, heap_count_max);
}

WipedHeap::WipedHeap() {
  mallopt(M_PERTURB, pattern);
}

void WipedHeap::leave() {
  is_over_ = true;
  mallopt(M_PERTURB, 0);
}

WipedHeap::~WipedHeap() {
  if (is_over_) return;
  overwrite_heaps_and_stacks();
  mallopt(M_PERTURB, 0);
  malloc_trim(0);
}

}  // namespace nacre::tools
