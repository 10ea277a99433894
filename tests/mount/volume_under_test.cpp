// SPDX-License-Identifier: Apache-2.0
// The choice of the volume.
#include "tests/mount/volume_under_test.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "tests/fs/store_fixture.h"

namespace nacre::tests {

namespace {

Result<std::unique_ptr<fs::Volume>> make_real_volume() {
  const auto backing = MemoryBacking::create();
  NACRE_TRY(fs::Volume::format(backing, test_keys(), 1, {.uid = geteuid(), .gid = getegid()}));
  NACRE_ASSIGN(auto engine, engine::Engine::create({.thread_count = 2}));
  return fs::Volume::open(backing, test_keys(), 1, std::move(engine), {});
}

}  // namespace

Result<VolumeUnderTest> make_volume_under_test() {
  VolumeUnderTest made;
  const char* wanted = std::getenv("NACRE_FUSE_VOLUME");
  if (wanted != nullptr && std::string_view(wanted) == "nacre") {
    NACRE_ASSIGN(made.volume, make_real_volume());
  } else {
    auto memory = std::make_unique<MemoryVolume>();
    made.memory = memory.get();
    made.volume = std::move(memory);
  }
  return made;
}

}  // namespace nacre::tests
