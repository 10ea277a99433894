// SPDX-License-Identifier: Apache-2.0
// Ranges of reserved blocks against a plain model, and random calls on a disk that is kept full.
//
// Each seed is printed.
#include <algorithm>
#include <bit>
#include <iostream>
#include <map>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "metadata/format/reserved_row.h"
#include "tests/fs/volume_reserved_fixture.h"

namespace nacre::tests {
namespace {

using fs::AllocateMode;
using fs::InodeNumber;

TEST(Reservation, finds_every_block_of_its_ranges) {
  const fs::BlockSizes sizes(64u << 10);
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    std::minstd_rand random(seed + 1);
    fs::Reservation reservation(sizes);
    std::vector<bool> model(200);
    for (int step = 0; step < 100; ++step) {
      const std::uint64_t first = random() % 200, end = first + random() % (200 - first);
      const bool adds = random() % 2 == 0;
      const auto had = static_cast<std::uint64_t>(std::count(
          model.begin() + static_cast<long>(first), model.begin() + static_cast<long>(end), true));
      std::uint64_t outside = 0;
      for (const auto& range : reservation.outside(first, end))
        outside += range.end - range.first;
      EXPECT_EQ(outside, end - first - had);
      if (adds) {
        EXPECT_TRUE(reservation.add(first, end));
      } else {
        EXPECT_EQ(reservation.remove(first, end), had);
      }
      std::fill(model.begin() + static_cast<long>(first), model.begin() + static_cast<long>(end),
                adds);
      for (std::uint64_t i = 0; i < model.size(); ++i)
        ASSERT_EQ((reservation.mask(i / 16) >> (i % 16) & 1) != 0, model[i]) << i;
      const auto row = reservation.row();
      if (!row.ranges.empty()) {
        EXPECT_EQ(metadata::decode_reserved_row(metadata::encode(row)).value(), row);
      }
    }
  }
}

TEST(Reservation, blocks_fit_a_mask_for_each_chunk_size) {
  for (std::uint32_t chunk = 4096; chunk <= 1u << 20; chunk *= 2) {
    const fs::BlockSizes sizes(chunk);
    EXPECT_LE(sizes.per_chunk, 32u);
    EXPECT_EQ(sizes.per_chunk * sizes.block_bytes, chunk);
    const std::uint32_t all = sizes.mask_of(0, chunk);
    EXPECT_EQ(std::popcount(all), static_cast<int>(sizes.per_chunk));
    EXPECT_EQ(sizes.mask_of(0, 0), 0u);
    EXPECT_EQ(sizes.mask_of(chunk - 1, chunk), all ^ (all >> 1));
  }
}

// Random calls on a disk that somebody else keeps full. A write that lies wholly in blocks that are
// reserved and were not written never fails, and survives.
class VolumeReservedModel : public VolumeReserved, public ::testing::WithParamInterface<unsigned> {
 protected:
  static constexpr std::uint64_t blocks_per_chunk = 16;
  static constexpr std::uint64_t block_count = 10 * blocks_per_chunk;
  struct Model {
    std::string content;  // as written
    std::vector<bool> reserved;
    std::vector<bool> used;  // the volume may have stored something for it
    Model() : reserved(block_count), used(block_count) {}
    bool is_promised(std::uint64_t offset, std::uint64_t size) const {
      for (std::uint64_t i = offset / block; i * block < offset + size; ++i) {
        if (!reserved[i] || used[i]) return false;
      }
      return true;
    }
    // In front of other data of their chunk, zeros may have been stored.
    void reserve(std::uint64_t first, std::uint64_t end) {
      for (std::uint64_t i = first; i < end; ++i) {
        if (reserved[i]) continue;
        for (std::uint64_t later = i; later / blocks_per_chunk == i / blocks_per_chunk; ++later)
          if (later < block_count && used[later]) used[i] = true;
        reserved[i] = true;
      }
    }
    // Zeros are stored for a part of a chunk.
    void punch(std::uint64_t first, std::uint64_t end) {
      for (std::uint64_t i = first; i < end; ++i) {
        const std::uint64_t chunk = i / blocks_per_chunk * blocks_per_chunk;
        reserved[i] = false;
        if (chunk >= first && chunk + blocks_per_chunk <= end) used[i] = false;
      }
    }
    void write(std::uint64_t offset, const std::string& bytes) {
      content.resize(std::max<std::size_t>(content.size(), offset + bytes.size()));
      content.replace(offset, bytes.size(), bytes);
      for (std::uint64_t i = offset / block; i * block < offset + bytes.size(); ++i)
        used[i] = true;
    }
  };
};

TEST_P(VolumeReservedModel, keeps_its_promise) {
  std::cout << "seed " << GetParam() << "\n";
  std::minstd_rand random(GetParam() * 7919 + 1);
  const auto pick = [&](std::uint64_t count) { return random() % count; };
  unmount();
  options_.store.segment_size_bytes = 256 << 10;
  options_.compaction.inlined_bytes_max = 16u << 10;
  options_.compaction.idle_after = std::chrono::milliseconds(1);
  mount();
  std::map<std::string, Model> files;
  for (const char* name : {"a", "b"}) {
    static_cast<void>(make_file(root, name));
    files[name];
  }
  NACRE_ASSERT_OK(volume().sync_all());
  bool is_full = false;
  std::uint64_t promised_writes = 0;
  for (int step = 0; step < 400 && !HasFailure(); ++step) {
    SCOPED_TRACE(fmt::format("seed {}, step {}", GetParam(), step));
    const std::string name = pick(2) == 0 ? "a" : "b";
    const InodeNumber file = find(root, name);
    Model& model = files[name];
    const std::uint64_t first = pick(block_count);
    const std::uint64_t count = 1 + pick(std::min<std::uint64_t>(20, block_count - first));
    const std::uint64_t offset = first * block, size = count * block;
    switch (pick(14)) {
      case 0:
      case 1: {
        if (is_full) {
          backing_->erase("foreign");
          is_full = false;
          NACRE_ASSERT_OK(volume().sync_all());  // and the ballast is whole again
        }
        const bool keeps = pick(2) == 0;
        reserve(file, offset, size, keeps ? AllocateMode::keep_size : AllocateMode::allocate);
        model.reserve(first, first + count);
        if (!keeps) model.content.resize(std::max(model.content.size(), offset + size));
        break;
      }
      case 2: {
        if (is_full) break;  // the zeros in a part of a chunk need room
        NACRE_ASSERT_OK(volume().allocate(file, AllocateMode::punch_hole, offset, size));
        model.punch(first, first + count);
        for (std::uint64_t i = offset; i < std::min(model.content.size(), offset + size); ++i)
          model.content[i] = 0;
        break;
      }
      case 3: {
        const std::uint64_t end = pick(block_count * block);
        if (pick(4) != 0) break;
        NACRE_ASSERT_OK(volume().change_attributes(file, {.size = end}));
        if (end <= model.content.size()) {
          for (std::uint64_t i = (end + block - 1) / block; i < block_count; ++i)
            model.reserved[i] = model.used[i] = false;
        }
        model.content.resize(end);
        break;
      }
      case 4:
        static_cast<void>(mounted().compact(fs::CompactionGoal::everything, nullptr));
        break;
      case 5:
        // What was taken on the strength of room that others take now is not the point.
        if (!is_full) {
          NACRE_ASSERT_OK(volume().sync_all());
          fill_from_outside();
        }
        is_full = true;
        break;
      case 6:
        if (pick(3) == 0) remount();
        break;
      case 7:
        if (pick(2) != 0) break;
        NACRE_ASSERT_OK(volume().sync_all());
        lose_power(pick(1000));
        break;
      default: {
        // On a full disk anything else might be refused: the next promised blocks are looked for.
        std::uint64_t begin = first, end = first + count;
        if (is_full) {
          while (begin < block_count && !model.is_promised(begin * block, block))
            ++begin;
          end = begin;
          while (end < std::min(begin + count, block_count) &&
                 model.is_promised(end * block, block))
            ++end;
        }
        if (begin == end) break;
        const std::uint64_t at = begin * block, length = (end - begin) * block;
        const bool is_promised = model.is_promised(at, length);
        const std::string bytes = pick(3) == 0 ? std::string(length, 'z') : noise(length, random());
        SCOPED_TRACE(
            fmt::format("{} bytes at {}, full {}, promised {}", length, at, is_full, is_promised));
        NACRE_ASSERT_OK(try_write(file, at, bytes, pick(2) == 0));
        model.write(at, bytes);
        promised_writes += is_promised && is_full ? 1 : 0;
        if (pick(2) == 0) NACRE_ASSERT_OK(sync(file));
        break;
      }
    }
    for (auto& [other, other_model] : files) {
      if (step % 10 != 0) break;
      const InodeNumber number = find(root, other);
      EXPECT_EQ(stat(number).size, other_model.content.size()) << other;
      EXPECT_TRUE(read(number) == other_model.content) << other;
    }
  }
  std::cout << promised_writes << " promised writes on a full disk\n";
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();
  for (const auto& [name, model] : files)
    EXPECT_TRUE(read(find(root, name)) == model.content) << name;
}

INSTANTIATE_TEST_SUITE_P(Seeds, VolumeReservedModel, ::testing::Range(1u, 13u));

}  // namespace
}  // namespace nacre::tests
