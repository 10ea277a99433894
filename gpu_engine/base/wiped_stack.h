// SPDX-License-Identifier: Apache-2.0
// What ended threads leave on stacks: the C library keeps some stacks for new threads, each with
// the last pages that were used, next to where a stack begins.
#pragma once

#include <cstddef>

namespace nacre {

// The library keeps 16 KiB of a stack, and the page at which a thread ends.
inline constexpr std::size_t wiped_stack_bytes = 32u << 10;
// It keeps stacks of 40 MiB together, which is this many of the usual size.
inline constexpr unsigned kept_stack_count_max = 5;

// Overwrites that much of the calling thread's stack below the caller's frame.
void wipe_stack();

}  // namespace nacre
