// SPDX-License-Identifier: Apache-2.0
// A whole volume in memory, with superblock and keyring, that works, is backed up into another
// directory in memory, and whose backups are opened, checked and compared with what was written.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "fs/backup/backup.h"
#include "fs/backup/closed_volume.h"
#include "fs/check/checker.h"
#include "metadata/volume_files.h"
#include "tests/fs/volume_fixture.h"
#include "tests/metadata/test_keys.h"
#include "tests/support/format_under_test.h"
#include "tests/support/noise.h"

namespace nacre::tests {

// Files in the root directory.
using Tree = std::map<std::string, std::string>;

class BackupTest : public ::testing::Test {
 protected:
  static constexpr fs::InodeNumber root = metadata::root_inode;

  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    source_ = MemoryBacking::create();
    target_ = MemoryBacking::create();
    make_volume(*source_);
    mount();
  }
  void TearDown() override {
    if (volume_) NACRE_EXPECT_OK(volume_.mounted().close());
  }

  void make_volume(MemoryBacking& backing) {
    const auto made = metadata::create_volume_files(
        backing,
        {.chunk_size_bytes = options_.store.chunk_size_bytes, .format = format_under_test()},
        recipients(public_key(0)));
    NACRE_ASSERT_OK(made);
    NACRE_ASSERT_OK(fs::Mounted::format(backing_of(backing), made->keys, 1, {}));
    NACRE_ASSERT_OK(metadata::complete_volume_files(backing, *made));
  }
  // A pointer that owns nothing.
  static std::shared_ptr<MemoryBacking> backing_of(MemoryBacking& backing) {
    return {std::shared_ptr<MemoryBacking>(), &backing};
  }

  Result<OpenVolume> open(const std::shared_ptr<MemoryBacking>& backing, bool read_only = false) {
    NACRE_ASSIGN(const auto keys,
                 metadata::open_volume_keys(*backing, metadata::VolumeSecret(identity(0))));
    NACRE_ASSIGN(auto engine, engine::Engine::create({.thread_count = 2}));
    fs::VolumeOptions options = options_;
    options.read_only = read_only;
    return fs::Mounted::open(backing, keys.keys, keys.keyring.generation, std::move(engine),
                             options);
  }
  void mount() {
    auto volume = open(source_);
    NACRE_ASSERT_OK(volume);
    volume_ = std::move(*volume);
  }
  void unmount() {
    NACRE_EXPECT_OK(volume_.mounted().close());
    volume_.reset();
  }

  // --- Work on the source; tree_ knows what it must hold.

  std::string noise(std::size_t size) { return tests::noise(size, random_()); }
  void put(const std::string& name, std::string content) {
    remove(name);
    const auto made = volume_->make_node(root, name, {}, S_IFREG | 0644, 0);
    NACRE_ASSERT_OK(made);
    NACRE_EXPECT_OK(volume_->write(made->inode, 0, as_bytes(content), {}));
    volume_->forget(made->inode, 1);
    tree_[name] = std::move(content);
  }
  void remove(const std::string& name) {
    if (tree_.erase(name) != 0) NACRE_EXPECT_OK(volume_->unlink(root, name));
  }
  void rename(const std::string& from, const std::string& to) {
    NACRE_EXPECT_OK(volume_->rename(root, from, root, to, fs::RenameMode::replace));
    tree_[to] = tree_[from];
    tree_.erase(from);
  }
  // Files come, go and change names; some are large enough for records, some are inlined.
  void work(int steps) {
    for (int i = 0; i < steps; ++i) {
      const std::string name = fmt::format("file {}", random_() % 24);
      const std::string other = fmt::format("file {}", random_() % 24);
      switch (random_() % 6) {
        case 0:
          remove(name);
          break;
        case 1:
          if (tree_.contains(name) && name != other) rename(name, other);
          break;
        case 2:
          put(name, noise(random_() % 300));
          break;
        default:
          put(name, noise(20'000 + random_() % 60'000));
      }
      if (random_() % 8 == 0) NACRE_EXPECT_OK(volume_->sync_all());
    }
  }
  void compact() { NACRE_EXPECT_OK(volume_.mounted().compact(fs::CompactionGoal::everything, {})); }

  // --- Backups.

  fs::BackupSource begin() {
    auto snapshot = volume_.mounted().begin_backup();
    NACRE_EXPECT_OK(snapshot);
    return {.snapshot = snapshot ? std::move(*snapshot) : fs::BackupSnapshot{}};
  }
  Result<fs::BackupReport> copy(const fs::BackupSource& what, MemoryBacking& target) {
    return fs::back_up(*source_, what, target, {}, {});
  }
  fs::BackupReport back_up() {
    const auto done = copy(begin(), *target_);
    NACRE_EXPECT_OK(done);
    return done.value_or(fs::BackupReport{});
  }

  // Expects the volume to be clean and to hold this tree, also if it is opened read-only, and
  // before it was ever opened.
  void expect_volume(const std::shared_ptr<MemoryBacking>& backing, const Tree& tree) {
    EXPECT_TRUE(holds(backing, {tree}));
  }
  bool holds(const std::shared_ptr<MemoryBacking>& backing, const std::vector<Tree>& any_of) {
    expect_clean(*backing->process_kill());
    bool found = true;
    for (const bool read_only : {true, false}) {
      const auto copy = backing->process_kill();
      const auto volume = open(copy, read_only);
      NACRE_EXPECT_OK(volume);
      if (!volume) return false;
      const Tree tree = read_tree(**volume);
      found &= std::find(any_of.begin(), any_of.end(), tree) != any_of.end();
      NACRE_EXPECT_OK(volume->mounted().close());
      if (!read_only) expect_clean(*copy);
    }
    return found;
  }
  static void expect_clean(MemoryBacking& backing) {
    const auto keys = metadata::open_volume_keys(backing, metadata::VolumeSecret(identity(0)));
    NACRE_ASSERT_OK(keys);
    const auto engine = engine::Engine::create({.thread_count = 2});
    const auto report =
        fs::check_volume(backing_of(backing), *keys, **engine, {.scrub = true, .deep = true}, {});
    NACRE_ASSERT_OK(report);
    for (const fs::Finding& finding : report->findings.findings()) {
      // Superblock and keyring are written one copy after the other.
      if (finding.what.ends_with("its other copy is used")) continue;
      EXPECT_EQ(finding.severity, fs::Severity::note) << finding.file << ": " << finding.what;
    }
  }
  static Tree read_tree(fs::Volume& volume) {
    Tree tree;
    NACRE_EXPECT_OK(volume.read_directory(root, 0, true, [&](const fs::DirectoryEntry& entry) {
      if (entry.attributes == nullptr) return true;
      tree.emplace(entry.name, std::to_string(entry.inode.value));
      return true;
    }));
    for (auto& [name, content] : tree) {
      const fs::InodeNumber inode{std::stoull(content)};
      const auto attributes = volume.attributes(inode);
      NACRE_EXPECT_OK(attributes);
      content.assign(attributes ? attributes->size : 0, '\0');
      NACRE_EXPECT_OK(volume.read(
          inode, 0, MutableByteView(reinterpret_cast<Byte*>(content.data()), content.size())));
      volume.forget(inode, 1);
    }
    return tree;
  }
  static bool is_volume(MemoryBacking& backing) {
    const auto state = metadata::inspect_directory(backing);
    return state && *state == metadata::DirectoryState::volume;
  }

  fs::VolumeOptions options_ = test_volume_options();
  std::shared_ptr<MemoryBacking> source_, target_;
  OpenVolume volume_;
  std::mt19937_64 random_{std::random_device{}()};
  Tree tree_;
};

}  // namespace nacre::tests
