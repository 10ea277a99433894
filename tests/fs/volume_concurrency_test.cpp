// SPDX-License-Identifier: Apache-2.0
// Many threads at once, with commits all the time: nothing deadlocks, nothing is lost, and the
// tables agree at the end. Most of its worth is under the sanitizers.
#include "tests/fs/volume_fixture.h"

#include <latch>
#include <random>

#include "tests/fs/table_checker.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;
using fs::RenameMode;

constexpr int thread_count = 4;
constexpr int step_count = 400;

class VolumeConcurrency : public VolumeTest {
 protected:
  void SetUp() override {
    options_.commit_interval_ms = 5;
    options_.dirty_budget_bytes = 256u << 10;
    options_.cache_budget_bytes = 128u << 10;
    VolumeTest::SetUp();
  }
  void TearDown() override {
    unmount();
    check_tables(backing_, options_.store.chunk_size_bytes, /*clean=*/true);
  }

  // Runs work(thread, random) on all threads together.
  void run(const std::function<void(int, std::mt19937&)>& work) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::cout << "seed " << seed << "\n";
    std::vector<std::thread> threads;
    for (int thread = 0; thread < thread_count; ++thread) {
      threads.emplace_back([&, thread] {
        std::mt19937 random(seed + static_cast<unsigned>(thread));
        work(thread, random);
      });
    }
    for (std::thread& thread : threads)
      thread.join();
  }

  // Fails the test for anything but success and the answers that a race explains.
  template <typename T>
  bool fine(const Result<T>& result) {
    if (result) return true;
    switch (result.error().code) {
      case ErrorCode::not_found:
      case ErrorCode::exists:
      case ErrorCode::not_empty:
      case ErrorCode::not_directory:
      case ErrorCode::is_directory:
      case ErrorCode::invalid_argument:
      case ErrorCode::stale:
        return false;
      default:
        ADD_FAILURE() << to_string(result.error().code) << ": " << result.error().message;
        return false;
    }
  }
};

TEST_F(VolumeConcurrency, one_tree_survives_all_operations_at_once) {
  std::vector<InodeNumber> directories = {root};
  for (int i = 0; i < 3; ++i)
    directories.push_back(make_directory(root, "d" + std::to_string(i)));
  run([&](int, std::mt19937& random) {
    std::vector<InodeNumber> held;
    const auto any_directory = [&] { return directories[random() % directories.size()]; };
    const auto any_name = [&] { return "n" + std::to_string(random() % 6); };
    const auto hold = [&](const Result<fs::Attributes>& attributes) {
      if (!fine(attributes)) return;
      held.push_back(attributes->inode);
    };
    for (int step = 0; step < step_count; ++step) {
      const InodeNumber directory = any_directory();
      const std::string name = any_name();
      switch (random() % 12) {
        case 0:
        case 1:
          hold(volume().make_node(directory, name, caller_, S_IFREG | 0644, 0));
          break;
        case 2:
          hold(volume().make_directory(directory, name, caller_, 0755));
          break;
        case 3:
          fine(volume().unlink(directory, name));
          break;
        case 4:
          fine(volume().remove_directory(directory, name));
          break;
        case 5:
          fine(volume().rename(directory, name, any_directory(), any_name(),
                               static_cast<RenameMode>(random() % 3)));
          break;
        case 6:
          hold(volume().lookup(directory, name));
          break;
        case 7:
          if (!held.empty()) {
            const InodeNumber inode = held[random() % held.size()];
            if (S_ISDIR(stat(inode).mode)) break;
            hold(volume().link(inode, directory, name));
          }
          break;
        case 8:
          if (!held.empty()) {
            const InodeNumber inode = held[random() % held.size()];
            const std::string text(random() % 40'000, static_cast<char>('a' + random() % 26));
            fine(volume().write(inode, random() % 50'000, as_bytes(text),
                                {.clear_set_id = fs::ClearSetId(random() % 3)}));
          }
          break;
        case 9:
          if (!held.empty()) {
            const InodeNumber inode = held[random() % held.size()];
            fine(volume().change_attributes(inode, {.size = random() % 60'000}));
            fine(volume().set_xattr(inode, "user." + any_name(), "v", fs::XattrMode::set, false));
          }
          break;
        case 10:
          fine(volume().read_directory(directory, 0, true, [&](const fs::DirectoryEntry& entry) {
            if (random() % 8 == 0) return false;
            if (entry.attributes != nullptr) held.push_back(entry.inode);
            return true;
          }));
          break;
        default:
          if (!held.empty()) fine(sync(held[random() % held.size()]));
      }
      while (held.size() > 8) {
        volume().forget(held.front(), 1);
        held.erase(held.begin());
      }
    }
    for (const InodeNumber inode : held)
      volume().forget(inode, 1);
  });
}

TEST_F(VolumeConcurrency, threads_do_not_disturb_each_others_files) {
  run([&](int thread, std::mt19937& random) {
    const std::string name = "file of " + std::to_string(thread);
    InodeNumber file = make_file(root, name);
    std::string expected;
    for (int step = 0; step < step_count; ++step) {
      const std::uint64_t offset = random() % 100'000;
      const std::string text(1 + random() % 10'000, static_cast<char>('a' + random() % 26));
      switch (random() % 8) {
        case 0:
          expected.resize(offset);
          NACRE_EXPECT_OK(volume().change_attributes(file, {.size = offset}));
          break;
        case 1:
          NACRE_EXPECT_OK(sync(file));
          break;
        case 2:
          EXPECT_EQ(read(file), expected);
          break;
        case 3:
          // Forgotten while it is being written back, and found again.
          volume().forget(file, 1);
          file = find(root, name);
          break;
        case 4:
          for (std::size_t i = offset; i < std::min(offset + text.size(), expected.size()); ++i)
            expected[i] = '\0';
          NACRE_EXPECT_OK(
              volume().allocate(file, fs::AllocateMode::punch_hole, offset, text.size()));
          break;
        default:
          if (expected.size() < offset + text.size()) expected.resize(offset + text.size());
          expected.replace(offset, text.size(), text);
          write(file, offset, text);
      }
    }
    EXPECT_EQ(read(file), expected);
  });
}

TEST_F(VolumeConcurrency, files_come_and_go_without_a_trace) {
  run([&](int thread, std::mt19937& random) {
    const InodeNumber directory = make_directory(root, "d" + std::to_string(thread));
    for (int step = 0; step < step_count; ++step) {
      const std::string name = std::to_string(random() % 4);
      const InodeNumber file = make_file(directory, name);
      write(file, random() % 200'000, "something");
      if (random() % 4 == 0) NACRE_EXPECT_OK(sync(file));
      NACRE_EXPECT_OK(volume().unlink(directory, name));
      if (random() % 2 == 0) write(file, 0, "more");
      volume().forget(file, 1);
    }
    NACRE_EXPECT_OK(volume().remove_directory(root, "d" + std::to_string(thread)));
    volume().forget(directory, 1);
  });
  // Inodes that a commit released last are erased with the next commit.
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().inode_count, 1u);
  EXPECT_EQ(mounted().stats().known_inodes, 1u);
  EXPECT_EQ(mounted().stats().dirty_bytes, 0u);
  EXPECT_EQ(mounted().stats().segments.live_bytes, 0u);
}

TEST_F(VolumeConcurrency, a_crash_amid_all_this_leaves_agreeing_tables) {
  for (int round = 0; round < 5; ++round) {
    run([&](int thread, std::mt19937& random) {
      for (int step = 0; step < step_count / 4; ++step) {
        const std::string flat = "f" + std::to_string(thread) + std::to_string(random() % 10);
        if (const auto made = volume().make_node(root, flat, caller_, S_IFREG | 0600, 0)) {
          write(made->inode, random() % 100'000, std::string(random() % 30'000, 'x'));
          if (random() % 3 == 0) NACRE_EXPECT_OK(sync(made->inode));
        } else if (random() % 2 == 0) {
          fine(volume().unlink(root, flat));
        } else {
          fine(volume().rename(root, flat, root, flat + "r", RenameMode::replace));
        }
      }
    });
    auto after = backing_->power_loss(std::random_device{}());
    check_tables(after, options_.store.chunk_size_bytes, /*clean=*/false);
    volume_.reset();
    backing_ = std::move(after);
    mount();
  }
}

}  // namespace
}  // namespace nacre::tests
