// SPDX-License-Identifier: Apache-2.0
// A volume of small segments that tests compact when they want to, with files of which only part is
// still live.
#pragma once

#include <map>
#include <string>

#include <fmt/format.h>

#include "fs/check/checker.h"
#include "fs/check/checksum_check.h"
#include "tests/fs/volume_fixture.h"
#include "tests/support/noise.h"

namespace nacre::tests {

class VolumeCompaction : public VolumeTest {
 protected:
  static constexpr std::uint32_t chunk_size = 4u << 10;

  void SetUp() override {
    options_.background_compaction = false;  // tests compact when they want to
    options_.store.chunk_size_bytes = chunk_size;
    options_.store.segment_size_bytes = 64u << 10;
    options_.store.codec = engine::Codec::none;
    VolumeTest::SetUp();
  }

  // Makes a new volume on a disk that is too small for segments of the requested size.
  static constexpr std::uint64_t small_disk_bytes = 48u << 20;
  void mount_on_small_disk() {
    unmount();
    options_.store.segment_size_bytes = 64u << 20;
    backing_->set_capacity(small_disk_bytes);
    mount();
  }

  fs::CompactionReport compact(fs::CompactionGoal goal = fs::CompactionGoal::everything) {
    const auto report = mounted().compact(goal, {});
    NACRE_EXPECT_OK(report);
    return report.value_or(fs::CompactionReport{});
  }
  fs::SegmentStats segments() { return mounted().stats().segments; }

  // Makes a file of count chunks, and overwrites all but every step-th of them.
  fs::InodeNumber make_holey_file(std::string_view name, std::size_t count, std::size_t step) {
    const fs::InodeNumber file = make_file(root, name);
    std::string content = noise(count * chunk_size, 1);
    // Written in pieces, since all records of one flush go into one segment.
    constexpr std::size_t piece = 8 * chunk_size;
    for (std::size_t at = 0; at < content.size(); at += piece) {
      write(file, at, std::string_view(content).substr(at, piece));
      NACRE_EXPECT_OK(volume().sync_all());
    }
    for (std::size_t chunk = 0; chunk < count; ++chunk) {
      if (chunk % step == 0) continue;
      const std::string fresh = noise(chunk_size, static_cast<std::uint32_t>(chunk + 100));
      write(file, chunk * chunk_size, fresh);
      content.replace(chunk * chunk_size, chunk_size, fresh);
    }
    NACRE_EXPECT_OK(volume().sync_all());
    contents_[file] = content;
    return file;
  }
  void expect_contents() {
    for (const auto& [file, content] : contents_)
      EXPECT_TRUE(read(file) == content) << "inode " << file.value;
  }
  // Expects the check with the key to find nothing. The volume is not mounted.
  void expect_clean() {
    metadata::VolumeKeys keys;
    keys.keys = test_keys();
    keys.superblock.chunk_size_bytes = chunk_size;
    keys.keyring.generation = 1;
    auto engine = engine::Engine::create({.thread_count = 2});
    NACRE_ASSERT_OK(engine);
    const auto report =
        fs::check_volume(backing_, keys, **engine, {.scrub = true, .deep = true}, {});
    NACRE_ASSERT_OK(report);
    for (const auto& finding : report->findings.findings()) {
      // The fixture has neither superblock nor keyring.
      if (finding.file.empty() || finding.file.starts_with("segments")) {
        EXPECT_NE(finding.severity, fs::Severity::error) << finding.file << ": " << finding.what;
      }
    }
  }

  // Expects the check without a key to find nothing. (Right after a crash it cannot tell a segment
  // that was being made from a damaged one.)
  void expect_clean_scrub() {
    fs::FindingList findings;
    fs::ScrubCounts counts;
    auto engine = engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 2});
    NACRE_ASSERT_OK(engine);
    NACRE_EXPECT_OK(fs::scrub_segments(*backing_, **engine, std::nullopt, counts, findings, {}));
    EXPECT_EQ(findings.error_count(), 0u);
  }

  std::map<fs::InodeNumber, std::string> contents_;
};

}  // namespace nacre::tests
