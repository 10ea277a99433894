// SPDX-License-Identifier: Apache-2.0
// The volume that is mounted. Usually it is the volume in memory, so that every failure is the FUSE
// layer's. With NACRE_FUSE_VOLUME=nacre in the environment it is the real volume over a directory
// in memory, which shows that both fit together.
#pragma once

#include <memory>

#include "tests/support/memory_volume.h"
#include "tests/support/open_volume.h"

namespace nacre::tests {

// One of the two.
struct VolumeUnderTest {
  OpenVolume real;
  std::unique_ptr<MemoryVolume> memory;

  fs::Volume& volume() const { return memory ? *memory : *real; }
  fs::ServedVolume served() const;
};
Result<VolumeUnderTest> make_volume_under_test();
Result<VolumeUnderTest> make_real_volume_under_test();

}  // namespace nacre::tests
