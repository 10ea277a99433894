// SPDX-License-Identifier: Apache-2.0
// Sparse files of some MiB against plain strings, where a flush takes so little that a commit needs
// many of them: files are cut, written and punched between the flushes of one commit, and the disk
// is full now and then. What is read must be what was written, and the tables must agree.
//
// NACRE_MODEL_SEED=n repeats a run, NACRE_MODEL_STEPS=n makes runs longer.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <future>
#include <iostream>
#include <random>
#include <string>

#include <fmt/format.h>

#include "tests/fs/table_checker.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::AllocateMode;
using fs::InodeNumber;

constexpr std::uint64_t file_size_max = 4u << 20;
constexpr std::size_t file_count = 3;

class SparseFilesModel : public VolumeTest {
 protected:
  void SetUp() override {
    options_.store.chunk_size_bytes = 4u << 10;
    options_.store.segment_size_bytes = 1u << 20;
    options_.dirty_budget_bytes = 32u << 20;  // commits alone write
    options_.flush_size_bytes_max = 32u << 10;
    options_.inline_commit_bytes_max = 0;
    VolumeTest::SetUp();
  }

  void run(std::uint32_t seed) {
    if (const char* given = std::getenv("NACRE_MODEL_SEED")) {
      seed = static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
    }
    int steps = 250;
    if (const char* given = std::getenv("NACRE_MODEL_STEPS")) steps = std::atoi(given);
    std::cout << "seed " << seed << ", " << steps << " steps\n";
    random_.seed(seed);
    for (std::size_t i = 0; i < file_count; ++i)
      files_.push_back({make_file(root, fmt::format("f{}", i)), {}});
    NACRE_EXPECT_OK(volume().sync_all());
    for (int step = 1; step <= steps && !HasFailure(); ++step) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, step));
      do_step();
      compare(any_file());
      if (step % 50 == 0) do_remount();
    }
    if (!HasFailure()) do_remount();
  }

 private:
  struct File {
    InodeNumber inode;
    std::string content;
  };

  std::size_t pick(std::size_t count) { return random_() % count; }
  File& any_file() { return files_[pick(files_.size())]; }

  void do_step() {
    switch (pick(10)) {
      case 0:
        commit(false);
        break;
      case 1:
        commit(true);
        break;
      case 2:
        meet_full_disk();
        break;
      case 3:
        if (pick(4) == 0) crash();
        break;
      default:
        change(any_file());
    }
  }

  void change(File& file) {
    const std::size_t offset = pick(file_size_max);
    switch (pick(6)) {
      case 0: {
        const std::size_t size = pick(3) == 0 ? pick(1 + file.content.size()) : pick(file_size_max);
        NACRE_EXPECT_OK(volume().change_attributes(file.inode, {.size = size}));
        file.content.resize(size);
        break;
      }
      case 1: {
        const std::size_t length = 1 + pick(1u << 20);
        NACRE_EXPECT_OK(volume().allocate(file.inode, AllocateMode::punch_hole, offset, length));
        const std::size_t end = std::min(file.content.size(), offset + length);
        if (offset < end) file.content.replace(offset, end - offset, end - offset, '\0');
        break;
      }
      default: {
        std::string text(1 + pick(pick(3) == 0 ? 300'000 : 6000), '\0');
        for (std::size_t i = 0; i < text.size(); ++i)
          text[i] = static_cast<char>(1 + (i / 512 + version_) % 255);
        ++version_;
        NACRE_EXPECT_OK(volume().write(file.inode, offset, as_bytes(text), {}));
        if (file.content.size() < offset + text.size()) file.content.resize(offset + text.size());
        file.content.replace(offset, text.size(), text);
      }
    }
  }

  // Commits one file, or all of them, with changes between the flushes of the commit.
  void commit(bool everything) {
    File& file = any_file();
    std::promise<Result<>> told;
    std::thread all;
    if (everything) {
      all = std::thread([&] { told.set_value(volume().sync_all()); });
    } else {
      volume().sync_inode(file.inode, [&](Result<> result) { told.set_value(std::move(result)); });
    }
    const std::size_t changes = pick(6);
    for (std::size_t i = 0; i < changes; ++i)
      change(any_file());
    NACRE_EXPECT_OK(told.get_future().get());
    if (all.joinable()) all.join();
  }

  // One write of a commit finds no space, and neither do a few after it.
  void meet_full_disk() {
    for (int i = 0; i < 4; ++i)
      change(any_file());
    backing_->inject({.operations = change_write | change_create,
                      .path_part = "segments",
                      .skip = pick(12),
                      .count = 1 + pick(6),
                      .code = ErrorCode::no_space,
                      .partial = pick(2) == 0});
    File& file = any_file();
    const auto first = sync(file.inode);
    if (!first) {
      EXPECT_EQ(first.error().code, ErrorCode::no_space) << first.error().message;
    }
    for (const File& any : files_)
      compare(any);
    backing_->clear_failures();
    NACRE_EXPECT_OK(volume().sync_all());
  }

  void do_remount() {
    unmount();
    check_tables(backing_, options_.store.chunk_size_bytes, /*clean=*/true);
    mount();
    for (const File& file : files_)
      compare(file);
  }

  // After a sync everything must be there; else each file is what it is, but whole.
  void crash() {
    const bool synced = pick(2) == 0;
    if (synced) NACRE_EXPECT_OK(volume().sync_all());
    auto after = backing_->power_loss(random_());
    volume_.reset();
    backing_ = std::move(after);
    check_tables(backing_, options_.store.chunk_size_bytes, /*clean=*/false);
    mount();
    ASSERT_TRUE(volume_);
    for (File& file : files_) {
      if (synced) compare(file);
      file.content = read(file.inode);
    }
  }

  void compare(const File& file) {
    const std::string found = read(file.inode);
    ASSERT_EQ(found.size(), file.content.size()) << "inode " << file.inode.value;
    if (std::memcmp(found.data(), file.content.data(), found.size()) == 0) return;
    const auto differs = std::mismatch(found.begin(), found.end(), file.content.begin());
    EXPECT_TRUE(differs.first == found.end())
        << "inode " << file.inode.value << ", byte " << differs.first - found.begin();
  }

  std::mt19937 random_;
  std::vector<File> files_;
  std::size_t version_ = 0;
};

TEST_F(SparseFilesModel, equal_plain_strings_though_flushes_are_tiny_1) {
  run(1);
}
TEST_F(SparseFilesModel, equal_plain_strings_though_flushes_are_tiny_2) {
  run(2);
}
TEST_F(SparseFilesModel, equal_plain_strings_though_flushes_are_tiny_with_a_new_seed) {
  run(std::random_device{}());
}

}  // namespace
}  // namespace nacre::tests
