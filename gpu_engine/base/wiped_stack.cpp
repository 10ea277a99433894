// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/base/wiped_stack.h"

#include "gpu_engine/base/bytes.h"

namespace nacre {

// A function that is inlined would overwrite its caller's frame only.
[[gnu::noinline]] void wipe_stack() {
  Byte below[wiped_stack_bytes];
  wipe(below);
}

}  // namespace nacre
