// SPDX-License-Identifier: Apache-2.0
// Files of which a salvage finds only parts, in lost+found: it says which of their zeros stand for
// missing bytes.
#include "tests/fs/salvage_fixture.h"

namespace nacre::tests {
namespace {

// No checkpoint knows anything of the files.
class SalvageGaps : public Salvage {
 protected:
  void SetUp() override {
    Salvage::SetUp();
    options_.checkpoints.interval_ms = 0;
    options_.inline_commit_bytes_max = 0;
    volume_.reset();
    source_ = MemoryBacking::create();
    make_volume(*source_);
    mount();
  }
};

TEST_F(SalvageGaps, of_a_file_in_lost_and_found_are_told) {
  const auto file = make(root, "file", S_IFREG);
  const std::string whole = noise(chunk_size), damaged = noise(chunk_size), piece = noise(100);
  write(file, 0, whole);
  write(file, 3 * chunk_size, damaged);
  write(file, 5 * chunk_size, whole + noise(7));
  NACRE_EXPECT_OK(volume_->sync_all());
  write(file, 500, piece);  // over what is there: no gap
  sync(file);
  crash();
  damage(location_of(3, file));
  lose_database(*source_);
  const auto report = salvage();
  NACRE_ASSERT_OK(report);
  ASSERT_EQ(report->newer.size(), 1u);
  EXPECT_EQ(gaps_of(report->newer[0]), fmt::format("{}+{} ", chunk_size, 4 * chunk_size));
  std::string content = whole + std::string(4 * chunk_size, '\0') + whole;
  content.replace(500, piece.size(), piece);
  EXPECT_EQ(newer_content(fmt::format("#{}", file.value)).substr(0, 6 * chunk_size), content);
}

// The whole chunk below them is damaged: of its bytes only those of the pieces are known.
TEST_F(SalvageGaps, between_pieces_of_a_chunk_that_is_gone_are_told) {
  const auto file = make(root, "file", S_IFREG);
  write(file, 0, noise(2 * chunk_size));
  NACRE_EXPECT_OK(volume_->sync_all());
  for (const std::uint32_t offset : {9000u, 100u, 150u}) {
    write(file, offset, noise(100));
    sync(file);
  }
  crash();
  damage(location_of(0, file));
  lose_database(*source_);
  const auto report = salvage();
  NACRE_ASSERT_OK(report);
  ASSERT_EQ(report->newer.size(), 1u);
  EXPECT_EQ(report->newer[0].pieced_count, 1u);
  EXPECT_EQ(gaps_of(report->newer[0]), fmt::format("0+100 250+8750 9100+{} ", chunk_size - 9100));
}

}  // namespace
}  // namespace nacre::tests
