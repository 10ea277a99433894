// SPDX-License-Identifier: Apache-2.0
// What a session serves: a volume, and the objects that connect it to the kernel.
#pragma once

#include <functional>

#include "fs/space/write_pacer.h"
#include "fs/volume/kernel_cache.h"
#include "fs/volume/volume.h"

namespace nacre::fs {

// All of these outlive the session.
struct ServedVolume {
  Volume& volume;
  KernelCacheLink& kernel_cache;  // the session sets it while the kernel is served
  WritePacer& pacer;              // decides when writers get their answers
  // The st_blksize of regular files, a power of two. Data and holes are told apart in units of it,
  // so it is the volume's chunk size. SEEK_DATA and SEEK_HOLE must agree with it.
  std::uint32_t block_size_bytes = 4096;
  // Whether the volume stays mounted although no program uses it. Null: never.
  std::function<bool()> is_needed = nullptr;
};

}  // namespace nacre::fs
