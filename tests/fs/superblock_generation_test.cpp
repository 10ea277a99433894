// SPDX-License-Identifier: Apache-2.0
// The row superblock_generation of format 2: an older superblock that is put back is refused, as an
// older keyring is, by mounts and checks. After the last generation there is none, and counting
// does not begin anew.
#include <algorithm>
#include <functional>
#include <optional>

#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {
namespace {

class SuperblockGeneration : public RotationTest {
 protected:
  // Replaces both copies, as a holder of the volume key can.
  void replace_superblock(const std::function<void(metadata::Superblock&)>& change) {
    auto keys = unlock(*backing_);
    NACRE_ASSERT_OK(keys);
    change(keys->superblock);
    NACRE_ASSERT_OK(metadata::save_superblock(*backing_, keys->superblock, *keys->keys));
  }
  void put_back(const Bytes& text) {
    backing_->store("superblock", text);
    backing_->store("superblock.copy", text);
  }
  std::optional<std::uint64_t> noted() {
    const auto row =
        volume_.mounted().database().get(metadata::Table::system, metadata::system_key_superblock);
    NACRE_EXPECT_OK(row);
    if (!row || !*row) return std::nullopt;
    return metadata::decode_u64(**row).value();
  }
  static bool is_format_2() { return format_under_test() == metadata::EpochFormat::two; }
};

TEST_F(SuperblockGeneration, is_noted_in_format_2_alone) {
  open();
  EXPECT_EQ(noted(), is_format_2() ? std::optional<std::uint64_t>(1) : std::nullopt);
  close();
  replace_superblock([](metadata::Superblock& it) { it.generation = 7; });
  open();
  EXPECT_EQ(noted(), is_format_2() ? std::optional<std::uint64_t>(7) : std::nullopt);
}

TEST_F(SuperblockGeneration, refuses_an_older_superblock_that_is_put_back) {
  const Bytes older = *backing_->load("superblock");
  replace_superblock([](metadata::Superblock& it) {
    it.generation++;
    it.padding = engine::Padding::padme;
  });
  open();
  close();
  put_back(older);
  const auto opened = try_open(backing_);
  if (!is_format_2()) {
    NACRE_EXPECT_OK(opened);  // docs/SECURITY.md says so
    return;
  }
  EXPECT_CODE(rolled_back, opened);
  const auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  auto engine = engine::Engine::create({.thread_count = 2});
  NACRE_ASSERT_OK(engine);
  const auto report = fs::check_volume(backing_, *keys, **engine, {}, {});
  NACRE_ASSERT_OK(report);
  const auto& findings = report->findings.findings();
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const fs::Finding& finding) {
    return finding.verdict == fs::Verdict::rolled_back && finding.file == "superblock";
  }));
}

TEST_F(SuperblockGeneration, is_noted_when_a_rotation_writes_a_superblock) {
  open();
  fill(6);
  NACRE_ASSERT_OK(rotation_->begin({.codec = engine::Codec::rle}));
  if (is_format_2()) {
    EXPECT_EQ(noted(), 2u);
  }
  NACRE_ASSERT_OK(rotation_->run({}));
  const auto found = metadata::find_superblock(*backing_);
  NACRE_ASSERT_OK(found);
  EXPECT_EQ(found->superblock.claims.generation, 3u);
  if (is_format_2()) {
    EXPECT_EQ(noted(), 3u);
  }
}

// A rotation needs another one at once, and one more at its end.
TEST_F(SuperblockGeneration, at_its_end_stops_a_rotation_before_it_begins) {
  for (const std::uint64_t generation : {metadata::generation_end - 1}) {
    replace_superblock([&](metadata::Superblock& it) { it.generation = generation; });
    open();
    EXPECT_CODE(too_big, rotation_->begin({}));
    EXPECT_CODE(too_big, rotation_->begin({.codec = engine::Codec::rle}));
    EXPECT_FALSE(keys_.keys->is_rotating());
    close();
  }
  open();
  EXPECT_EQ(keys_.superblock.generation, metadata::generation_end - 1);
}

TEST_F(SuperblockGeneration, of_the_keyring_at_its_end_stops_a_rotation_before_it_begins) {
  for (const std::uint64_t generation :
       {metadata::generation_end - 2, metadata::generation_end - 1}) {
    auto keys = unlock(*backing_);
    NACRE_ASSERT_OK(keys);
    keys->keyring.generation = generation;
    NACRE_ASSERT_OK(metadata::save_keyring(*backing_, keys->keyring, *keys->keys));
    open();
    EXPECT_CODE(too_big, rotation_->begin({}));
    EXPECT_FALSE(keys_.keys->is_rotating());
    close();
  }
  open();
}

}  // namespace
}  // namespace nacre::tests
