// SPDX-License-Identifier: Apache-2.0
// The choice of the volume.
#include "tests/mount/volume_under_test.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "tests/fs/store_fixture.h"
#include "tests/support/format_under_test.h"

namespace nacre::tests {

namespace {

Result<std::shared_ptr<metadata::KeyTree>> keys_of_suite(std::string_view name) {
  NACRE_ASSIGN(const auto suite, engine::suite_from_name(name));
  std::vector<metadata::EpochKey> epochs;
  epochs.push_back({.number = 1,
                    .suite = suite,
                    .key = SecretBytes(Bytes(32, 7)),
                    .format = format_under_test()});
  return std::make_shared<metadata::KeyTree>(engine::VolumeId{1, 2, 3}, SecretBytes(Bytes(32, 9)),
                                             std::move(epochs));
}

// Makes a volume with the codec and the cipher suite that NACRE_TEST_CODEC and NACRE_TEST_SUITE
// name, if they are set.
Result<OpenVolume> make_real_volume() {
  const char* const suite = std::getenv("NACRE_TEST_SUITE");
  const char* const codec = std::getenv("NACRE_TEST_CODEC");
  NACRE_ASSIGN(const auto keys, keys_of_suite(suite != nullptr ? suite : "aes-256-gcm"));
  fs::VolumeOptions options;
  if (codec != nullptr) {
    NACRE_ASSIGN(options.store.codec, engine::codec_from_name(codec));
  }
  const auto backing = MemoryBacking::create();
  NACRE_TRY(fs::Mounted::format(backing, keys, 1, {.uid = geteuid(), .gid = getegid()}));
  NACRE_ASSIGN(auto engine, engine::Engine::create({.thread_count = 2}));
  return fs::Mounted::open(backing, keys, 1, std::move(engine), options);
}

}  // namespace

fs::ServedVolume VolumeUnderTest::served() const {
  if (memory) return memory->served();
  return {.volume = *real,
          .kernel_cache = real.mounted().kernel_cache(),
          .pacer = real.mounted().compactor().pacer(),
          .block_size_bytes = fs::SegmentStoreOptions().chunk_size_bytes};
}

Result<VolumeUnderTest> make_real_volume_under_test() {
  VolumeUnderTest made;
  NACRE_ASSIGN(made.real, make_real_volume());
  return made;
}

Result<VolumeUnderTest> make_volume_under_test() {
  const char* wanted = std::getenv("NACRE_FUSE_VOLUME");
  if (wanted != nullptr && std::string_view(wanted) == "nacre") {
    return make_real_volume_under_test();
  }
  VolumeUnderTest made;
  made.memory = std::make_unique<MemoryVolume>();
  return made;
}

}  // namespace nacre::tests
