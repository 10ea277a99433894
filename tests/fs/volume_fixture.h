// SPDX-License-Identifier: Apache-2.0
// A volume over a directory in memory that can be remounted, lose power, and have its tables
// counted.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fs/volume/kernel_clock.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/memory_backing.h"
#include "tests/support/open_volume.h"

namespace nacre::tests {

inline fs::VolumeOptions test_volume_options() {
  fs::VolumeOptions options;
  options.commit_interval_ms = 3'600'000;  // tests commit when they want to
  options.inline_commit_bytes_max = 8u << 10;
  options.dirty_budget_bytes = 4u << 20;
  options.cache_budget_bytes = 4u << 20;
  options.store.segment_size_bytes = 1u << 20;
  options.store.fresh_lane_count = fs::fresh_lane_count_max;  // as on a disk of 8 GiB
  options.store.chunk_size_bytes = 16u << 10;
  return options;
}

// Does what fsync does. Sets *committed, if given, to whether that took a commit, which makes every
// name durable too. (After a commit, done is called on the commit thread, see volume.h.)
inline Result<> sync_and_wait(fs::Volume& volume, fs::InodeNumber inode,
                              bool* committed = nullptr) {
  std::promise<Result<>> promise;
  const auto caller = std::this_thread::get_id();
  volume.sync_inode(inode, [&](Result<> result) {
    if (committed != nullptr) *committed = std::this_thread::get_id() != caller;
    promise.set_value(std::move(result));
  });
  return promise.get_future().get();
}

// EXPECT_CODE(not_found, volume.lookup(…))
#define EXPECT_CODE(expected_code, expression)                                              \
  do {                                                                                      \
    const auto& nacre_outcome = (expression);                                               \
    EXPECT_FALSE(nacre_outcome) << "succeeded";                                             \
    if (!nacre_outcome) {                                                                   \
      EXPECT_EQ(to_string(ErrorCode::expected_code), to_string(nacre_outcome.error().code)) \
          << nacre_outcome.error().message;                                                 \
    }                                                                                       \
  } while (false)

class VolumeTest : public ::testing::Test {
 protected:
  static constexpr fs::InodeNumber root = metadata::root_inode;

  void SetUp() override {
    backing_ = MemoryBacking::create();
    NACRE_ASSERT_OK(fs::Mounted::format(backing_, test_keys(), 1, caller_));
    mount();
  }
  void TearDown() override {
    if (volume_) NACRE_EXPECT_OK(volume_.mounted().close());
  }

  virtual Result<OpenVolume> open(std::uint64_t keyring_generation = 1) {
    auto engine = engine::Engine::create({.thread_count = 2});
    if (!engine) return tl::unexpected(engine.error());
    return fs::Mounted::open(backing_, test_keys(), keyring_generation, std::move(*engine),
                             options_);
  }
  void mount() {
    auto volume = open();
    NACRE_ASSERT_OK(volume);
    volume_ = std::move(*volume);
  }
  void unmount() {
    NACRE_EXPECT_OK(volume_.mounted().close());
    volume_.reset();
  }
  void remount() {
    unmount();
    mount();
  }
  // Power is lost now, and the volume is mounted again from what the medium holds. seed is that of
  // MemoryBacking::power_loss().
  void lose_power(std::uint64_t seed = 0) {
    auto after = backing_->power_loss(seed);
    volume_.reset();
    backing_ = std::move(after);
    mount();
  }

  fs::Volume& volume() { return *volume_; }
  fs::Mounted& mounted() { return volume_.mounted(); }

  fs::InodeNumber make_file(fs::InodeNumber parent, std::string_view name,
                            std::uint32_t mode = 0644) {
    return inode_of(volume_->make_node(parent, name, caller_, S_IFREG | mode, 0), name);
  }
  fs::InodeNumber make_directory(fs::InodeNumber parent, std::string_view name,
                                 std::uint32_t mode = 0755) {
    return inode_of(volume_->make_directory(parent, name, caller_, mode), name);
  }
  // Returns the attributes, once the kernel's clock has ticked since the last change. So later
  // changes get later times.
  fs::Attributes stat(fs::InodeNumber inode) {
    const auto attributes = volume_->attributes(inode);
    NACRE_EXPECT_OK(attributes);
    const fs::Attributes found = attributes.value_or(fs::Attributes{});
    const auto last = std::max(found.changed, found.modified);
    for (auto now = fs::kernel_now(); !(now > last) && last.seconds - now.seconds < 2;
         now = fs::kernel_now()) {
      std::this_thread::yield();
    }
    return found;
  }
  fs::InodeNumber find(fs::InodeNumber parent, std::string_view name) {
    return inode_of(volume_->lookup(parent, name), name);
  }
  bool exists(fs::InodeNumber parent, std::string_view name) {
    const auto found = volume_->lookup(parent, name);
    if (found) volume_->forget(found->inode, 1);
    EXPECT_TRUE(found || found.error().code == ErrorCode::not_found) << found.error().message;
    return found.has_value();
  }
  void write(fs::InodeNumber inode, std::uint64_t offset, std::string_view text) {
    NACRE_EXPECT_OK(volume_->write(inode, offset, as_bytes(text), {}));
  }
  std::string read(fs::InodeNumber inode) {
    Bytes bytes(stat(inode).size);
    const auto count = volume_->read(inode, 0, bytes);
    NACRE_EXPECT_OK(count);
    if (count) {
      EXPECT_EQ(*count, bytes.size());
    }
    return std::string(as_text(bytes));
  }
  std::vector<std::string> list(fs::InodeNumber inode) {
    std::vector<std::string> names;
    NACRE_EXPECT_OK(volume_->read_directory(inode, 0, false, [&](const fs::DirectoryEntry& entry) {
      if (entry.name != "." && entry.name != "..") names.emplace_back(entry.name);
      return true;
    }));
    std::sort(names.begin(), names.end());
    return names;
  }
  Result<> sync(fs::InodeNumber inode, bool* committed = nullptr) {
    return sync_and_wait(*volume_, inode, committed);
  }

  // Rows of each table of the unmounted volume; without those that say nothing about files.
  std::map<metadata::Table, std::size_t> count_rows() {
    std::map<metadata::Table, std::size_t> counts;
    auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_EXPECT_OK(database);
    if (!database) return counts;
    using metadata::Table;
    for (const Table table : {Table::inodes, Table::dentries, Table::chunks, Table::inlined,
                              Table::xattrs, Table::orphans}) {
      NACRE_EXPECT_OK((*database)->scan(table, "", "", [&](std::string_view, std::string_view) {
        ++counts[table];
        return true;
      }));
    }
    return counts;
  }

  fs::Caller caller_{.uid = 1000, .gid = 100, .umask = 022};
  fs::VolumeOptions options_ = test_volume_options();
  std::shared_ptr<MemoryBacking> backing_;
  OpenVolume volume_;

 private:
  static fs::InodeNumber inode_of(const Result<fs::Attributes>& attributes, std::string_view name) {
    EXPECT_TRUE(attributes) << name << ": " << to_string(attributes.error().code) << ": "
                            << attributes.error().message;
    return attributes ? attributes->inode : fs::InodeNumber{};
  }
};

}  // namespace nacre::tests
