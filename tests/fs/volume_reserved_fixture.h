// SPDX-License-Identifier: Apache-2.0
// A volume on a small disk in memory that is filled by its own files, and by somebody else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fs/space/reservation.h"
#include "fs/store/ballast.h"
#include "tests/fs/volume_fixture.h"
#include "tests/support/noise.h"

namespace nacre::tests {

class VolumeReserved : public VolumeTest {
 protected:
  static constexpr std::uint64_t disk_size_bytes = 64u << 20;
  static constexpr std::uint64_t block = 4096;
  static constexpr std::uint64_t mebibyte = 1u << 20;

  void SetUp() override {
    options_.store.fresh_lane_count = 1;  // as on a small disk
    options_.store.chunk_size_bytes = 64u << 10;
    backing_ = MemoryBacking::create();
    backing_->set_capacity(disk_size_bytes);
    NACRE_ASSERT_OK(fs::Mounted::format(backing_, test_keys(), 1, caller_));
    mount();
  }

  std::uint64_t available_bytes() { return volume().space().value().available_bytes; }
  std::uint64_t blocks_bytes(fs::InodeNumber file) { return stat(file).blocks * 512; }
  void reserve(fs::InodeNumber file, std::uint64_t offset, std::uint64_t length,
               fs::AllocateMode mode = fs::AllocateMode::allocate) {
    NACRE_ASSERT_OK(volume().allocate(file, mode, offset, length));
  }
  fs::InodeNumber make_reserved(std::string_view name, std::uint64_t size) {
    const fs::InodeNumber file = make_file(root, name);
    reserve(file, 0, size);
    NACRE_EXPECT_OK(sync(file));
    return file;
  }
  // Somebody else takes all that is left of the disk.
  void fill_from_outside() {
    const std::uint64_t has = backing_->load("foreign").value_or(Bytes()).size();
    backing_->store("foreign", Bytes(has + backing_->space().value().free_bytes));
  }
  // No byte more can be stored that is not reserved. What compaction keeps for itself stays.
  void fill() {
    const fs::InodeNumber filler = make_file(root, "filler");
    for (std::uint64_t at = 0;; at += 256 << 10) {
      const auto written = volume().write(filler, at, as_bytes(noise(256 << 10, at)), {});
      if (!written) {
        EXPECT_EQ(written.error().code, ErrorCode::no_space) << written.error().message;
        break;
      }
      NACRE_EXPECT_OK(sync(filler));
      ASSERT_LT(at, disk_size_bytes);
    }
    std::uint64_t at = disk_size_bytes;
    while (volume().write(filler, at, as_bytes(noise(block, at)), {}))
      at += block;
    static_cast<void>(volume().sync_all());
  }
  Result<> try_write(fs::InodeNumber file, std::uint64_t offset, std::string_view bytes,
                     bool is_taken = false) {
    return volume().write(file, offset, as_bytes(bytes), {.is_taken = is_taken});
  }
  std::uint64_t promised_bytes() {
    return backing_->file_size(fs::ballast_file).value_or(0) -
           fs::Ballast::size_for(disk_size_bytes);
  }
  void expect_content(fs::InodeNumber file, std::uint64_t offset, const std::string& wanted) {
    Bytes bytes(wanted.size());
    const auto count = volume().read(file, offset, bytes);
    NACRE_ASSERT_OK(count);
    EXPECT_TRUE(as_text(bytes) == wanted) << "at " << offset;
  }
};

}  // namespace nacre::tests
