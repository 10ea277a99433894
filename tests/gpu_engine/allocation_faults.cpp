// SPDX-License-Identifier: Apache-2.0
// operator new over malloc, which sanitizers watch as they watch their own.
#include "tests/gpu_engine/allocation_faults.h"

#include <cstdlib>
#include <limits>
#include <new>

namespace nacre::engine {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
thread_local std::size_t allocations_left = unlimited;

}  // namespace

AllocationFaults::AllocationFaults(std::size_t allowed) {
  allocations_left = allowed;
}

AllocationFaults::~AllocationFaults() {
  allocations_left = unlimited;
}

}  // namespace nacre::engine

void* operator new(std::size_t size) {
  using nacre::engine::allocations_left;
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left != nacre::engine::unlimited) --allocations_left;
  void* const made = std::malloc(size == 0 ? 1 : size);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
