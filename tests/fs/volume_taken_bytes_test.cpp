// SPDX-License-Identifier: Apache-2.0
// What write() took, fsync stores, however full the disk is. A chunk that is written in part may be
// stored as a whole: once, 300 KiB in each of some chunks of 1 MiB were taken where a third of
// those chunks had room, and fsync refused them.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "tests/fs/volume_fixture.h"
#include "tests/support/noise.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;

enum class WritePattern : std::uint8_t {
  append,
  append_little,
  overwrite,
  scattered,
  truncate_and_write,
  gaps,
  small_files,
};
constexpr std::array<std::string_view, 7> write_pattern_names = {
    "append", "append_little", "overwrite", "scattered", "truncate_and_write",
    "gaps",   "small_files"};

using WriteCase = std::tuple<WritePattern, std::uint32_t /* chunk size in KiB */>;

std::string name_of_case(const ::testing::TestParamInfo<WriteCase>& info) {
  const auto [pattern, chunk_size_kib] = info.param;
  return fmt::format("{}_{}_KiB", write_pattern_names[static_cast<std::size_t>(pattern)],
                     chunk_size_kib);
}

class VolumeTakenBytes : public VolumeTest, public ::testing::WithParamInterface<WriteCase> {
 protected:
  static constexpr std::uint64_t mebibyte = 1u << 20;
  static constexpr std::uint64_t disk_size_bytes = 64 * mebibyte;
  static constexpr std::uint64_t base_size_bytes = 16 * mebibyte;

  void SetUp() override {}  // one volume for each level

  // A fresh volume with a base file, in which new data may use this much.
  void begin(std::uint64_t room_bytes) {
    const auto [pattern, chunk_size_kib] = GetParam();
    options_.store.fresh_lane_count = 1;  // as on a small disk
    options_.store.chunk_size_bytes = chunk_size_kib << 10;
    options_.store.codec = engine::Codec::none;   // zeros take room, too
    options_.dirty_budget_bytes = 64 * mebibyte;  // nothing is written before the fsync
    backing_ = MemoryBacking::create();
    backing_->set_capacity(disk_size_bytes);
    NACRE_ASSERT_OK(fs::Mounted::format(backing_, test_keys(), 1, caller_));
    mount();
    model_.clear();
    files_.clear();
    if (pattern != WritePattern::small_files) make("f");
    if (pattern == WritePattern::overwrite || pattern == WritePattern::scattered ||
        pattern == WritePattern::truncate_and_write) {
      model_[0] = noise(base_size_bytes, 1);
      for (std::uint64_t at = 0; at < base_size_bytes; at += mebibyte)
        write(files_[0], at, std::string_view(model_[0]).substr(at, mebibyte));
    }
    NACRE_ASSERT_OK(volume().sync_all());
    const std::uint64_t has = volume().space().value().available_bytes;
    ASSERT_GT(has, room_bytes);
    backing_->store("foreign", Bytes(has - room_bytes));
  }
  void make(std::string_view name) {
    files_.push_back(make_file(root, name));
    model_.emplace_back();
  }
  // Returns whether it was taken.
  bool put(std::size_t file, std::uint64_t offset, std::size_t size, std::uint64_t seed) {
    const std::string bytes = noise(size, seed);
    const auto written = volume().write(files_[file], offset, as_bytes(bytes), {});
    if (!written) {
      EXPECT_EQ(written.error().code, ErrorCode::no_space) << written.error().message;
      return false;
    }
    std::string& content = model_[file];
    content.resize(std::max<std::size_t>(content.size(), offset + size));
    content.replace(offset, size, bytes);
    return true;
  }
  void cut(std::size_t file, std::uint64_t size) {
    NACRE_EXPECT_OK(volume().change_attributes(files_[file], {.size = size}));
    model_[file].resize(size);
  }
  static unsigned count_of(WritePattern pattern) {
    switch (pattern) {
      case WritePattern::append_little:
      case WritePattern::scattered:
        return 640;
      case WritePattern::small_files:
        return 200;
      case WritePattern::truncate_and_write:
        return 30;
      default:
        return 48;
    }
  }
  bool step(WritePattern pattern, unsigned i) {
    constexpr std::uint64_t base_count = base_size_bytes / mebibyte;
    switch (pattern) {
      case WritePattern::append:
        return put(0, model_[0].size(), 300'000, i);
      case WritePattern::append_little:
        return put(0, model_[0].size(), 5'000, i);
      case WritePattern::overwrite:
        return put(0, i % base_count * mebibyte + 1000 * i, 300'000, i);
      case WritePattern::scattered:  // 40 in each mebibyte: more than a row has patches
        return put(0, i / 40 % base_count * mebibyte + i % 40 * 25'000, 700, i);
      case WritePattern::truncate_and_write:
        cut(0, model_[0].size() - 500'000);
        return put(0, model_[0].size() - 400'000, 450'000, i);
      case WritePattern::gaps:
        return put(0, (i + 1) * mebibyte - 4096, 4096, i);
      case WritePattern::small_files:
        make(fmt::format("f{}", i));
        return put(i, 0, 3'000, i);
    }
    return false;
  }
  void expect_content() {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const std::string stored = read(files_[i]);
      EXPECT_EQ(stored.size(), model_[i].size()) << "file " << i;
      EXPECT_TRUE(stored == model_[i]) << "file " << i;
    }
  }

  std::vector<InodeNumber> files_;
  std::vector<std::string> model_;  // what each should hold
};

TEST_P(VolumeTakenBytes, are_stored_by_fsync) {
  const auto pattern = std::get<0>(GetParam());
  struct Level {
    std::uint64_t room_bytes;
    unsigned sync_every;  // and at the end
  };
  constexpr unsigned never = 1000;
  for (const auto& [room_bytes, sync_every] :
       {Level{12 * mebibyte, never}, Level{7 * mebibyte, 7}, Level{4 * mebibyte, never},
        Level{2 * mebibyte, 7}, Level{mebibyte, never}}) {
    SCOPED_TRACE(fmt::format("{} bytes left, fsync after {}", room_bytes, sync_every));
    ASSERT_NO_FATAL_FAILURE(begin(room_bytes));
    unsigned taken = 0;
    while (taken < count_of(pattern) && step(pattern, taken)) {
      if (++taken % sync_every == 0) NACRE_EXPECT_OK(volume().sync_all());
    }
    if (room_bytes >= 4 * mebibyte) {
      EXPECT_GT(taken, 0u);
    }
    for (const InodeNumber file : files_)
      NACRE_EXPECT_OK(sync(file));
    expect_content();
    lose_power();
    expect_content();
    ASSERT_FALSE(HasFailure());
    NACRE_ASSERT_OK(mounted().close());
    volume_.reset();
  }
}

using enum WritePattern;
INSTANTIATE_TEST_SUITE_P(Patterns, VolumeTakenBytes,
                         ::testing::Combine(::testing::Values(append, append_little, overwrite,
                                                              scattered, truncate_and_write, gaps,
                                                              small_files),
                                            ::testing::Values(64u, 1024u)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(SmallChunks, VolumeTakenBytes,
                         ::testing::Combine(::testing::Values(append, overwrite, scattered),
                                            ::testing::Values(16u)),
                         name_of_case);

}  // namespace
}  // namespace nacre::tests
