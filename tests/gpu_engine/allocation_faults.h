// SPDX-License-Identifier: Apache-2.0
// Memory that runs out at a chosen place: allocation_faults.cpp replaces operator new for the
// program it is linked into.
#pragma once

#include <cstddef>

namespace nacre::engine {

// While it exists, operator new on the calling thread makes a given number of allocations, and then
// throws std::bad_alloc each time.
class AllocationFaults {
 public:
  explicit AllocationFaults(std::size_t allowed);
  ~AllocationFaults();
  AllocationFaults(const AllocationFaults&) = delete;
  AllocationFaults& operator=(const AllocationFaults&) = delete;
};

}  // namespace nacre::engine
