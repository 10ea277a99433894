// SPDX-License-Identifier: Apache-2.0
// What is mounted: the volume in memory, so that failures are the FUSE layer's, or, with
// NACRE_FUSE_VOLUME=nacre in the environment, the real volume over a directory in memory, so that
// both are shown to fit.
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
