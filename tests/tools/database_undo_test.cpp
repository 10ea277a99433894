// SPDX-License-Identifier: Apache-2.0
// What an undo of a repair of db/ puts back must be what the repair took away.
#include <algorithm>

#include "fs/repair/database_swap.h"
#include "tests/tools/checker_fixture.h"
#include "tests/tools/repair_fixture.h"

namespace nacre::tests {
namespace {

constexpr std::size_t sealed_header_size = 64;

using DatabaseUndo = CheckerTest;

// An earlier version recognised the old db/ by its files' names, sizes and headers alone, and
// removed the new one.
TEST_F(DatabaseUndo, is_refused_where_the_old_database_has_changed) {
  store_superblock_and_keyring(*backing_, chunk_size);
  mount();
  write(make_file(root, "file"), 0, noise(100'000, 1));
  unmount();
  const auto files = backing_->files();
  const auto table = std::find_if(files.begin(), files.end(),
                                  [](const auto& path) { return path.ends_with(".sst"); });
  ASSERT_NE(table, files.end());
  edit_file(*table, [](Bytes& bytes) { bytes.at(sealed_header_size + 100) ^= 1; });
  Repairer repairer(backing_, opened_keys(chunk_size, keyring_generation_));
  const auto done = repairer.repair();
  NACRE_ASSERT_OK(done);
  ASSERT_TRUE(done->draft.database);
  const std::string folder = fs::database_folder_of(done->name) + "/";
  std::map<std::string, Bytes> repaired;
  for (const auto& path : backing_->files()) {
    if (path.starts_with(folder)) {
      edit_file(path, [](Bytes& bytes) {
        std::fill(bytes.begin() + std::min(bytes.size(), sealed_header_size), bytes.end(), Byte{});
      });
    }
    repaired[path] = *backing_->load(path);
  }
  const auto plan = fs::load_plan(*backing_, *test_keys(), done->name);
  NACRE_ASSERT_OK(plan);
  const auto undone = fs::undo_plan(backing_, opened_keys(chunk_size, 1), *plan);
  ASSERT_FALSE(undone);
  EXPECT_EQ(undone.error().code, ErrorCode::not_permitted);
  EXPECT_NE(undone.error().message.find(fs::database_folder_of(done->name)), std::string::npos);
  for (const auto& [path, bytes] : repaired) {
    const auto now = backing_->load(path);
    EXPECT_TRUE(now && *now == bytes) << path;
  }
  EXPECT_EQ(repairer.check().findings.error_count(), 0u);
}

// A dry run leaves db/ under the name that an interrupted swap gave it. An earlier version then
// said that db/ is lost.
TEST_F(DatabaseUndo, that_is_interrupted_is_told_by_a_dry_run_and_ended_by_a_repair) {
  store_superblock_and_keyring(*backing_, chunk_size);
  mount();
  write(make_file(root, "file"), 0, noise(100'000, 1));
  unmount();
  NACRE_ASSERT_OK(backing_->rename("db", "db.moving"));
  Repairer repairer(backing_, opened_keys(chunk_size, keyring_generation_));
  const auto dry = repairer.repair_as_shown();
  ASSERT_FALSE(dry);
  EXPECT_NE(dry.error().message.find("was interrupted while it moved db/"), std::string::npos)
      << dry.error().message;
  NACRE_ASSERT_OK(repairer.repair());
  EXPECT_EQ(repairer.check().findings.error_count(), 0u);
}

}  // namespace
}  // namespace nacre::tests
