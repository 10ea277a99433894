// SPDX-License-Identifier: Apache-2.0
// What a session serves: a volume, and what ties it to the kernel.
#pragma once

#include <functional>

#include "fs/space/write_pacer.h"
#include "fs/volume/kernel_cache.h"
#include "fs/volume/volume.h"

namespace nacre::fs {

// All of it outlives the session.
struct ServedVolume {
  Volume& volume;
  KernelCacheLink& kernel_cache;  // the session sets it while the kernel is served
  WritePacer& pacer;              // says when writers get their answers
  // It stays mounted though nobody uses it; none: never.
  std::function<bool()> is_needed = nullptr;
};

}  // namespace nacre::fs
