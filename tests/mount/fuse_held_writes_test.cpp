// SPDX-License-Identifier: Apache-2.0
// Writers that wait for compaction occupy no thread that serves requests.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/fs/store_fixture.h"
#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseHeldWrites : public FuseMount {
 protected:
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.thread_count = 4;
    return options;
  }

  // More than threads. Over io_uring a CPU has few places for requests, and a held one takes one.
  std::size_t writer_count() const { return is_over_uring() ? 1 : 16; }

  void start_writers() {
    memory().pacer().engage(1);
    for (std::size_t i = 0; i < writer_count(); ++i) {
      writers_.push_back(std::async(std::launch::async, [this, i] {
        // Opened once: when the mount ends there is no path to open it by.
        const File file(written_path(i), O_RDWR | O_CREAT);
        EXPECT_EQ(write(file, content(i).data(), content(i).size()),
                  static_cast<ssize_t>(content(i).size()));
        EXPECT_EQ(fsync(file), 0);
      }));
    }
    while (memory().pacer().stats().waiting_count < writer_count())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool is_any_done() {
    for (auto& writer : writers_) {
      if (writer.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return true;
    }
    return false;
  }
  void wait_for_writers() {
    for (auto& writer : writers_)
      writer.get();
  }
  std::string written_path(std::size_t i) const { return path(fmt::format("written{}", i)); }
  static std::string content(std::size_t i) {
    return std::string(10'000, static_cast<char>('a' + i));
  }

  std::vector<std::future<void>> writers_;
};

TEST_F(FuseHeldWrites, keep_nobody_else_waiting) {
  NACRE_NEEDS_MEMORY_VOLUME();
  put(path("read"), "content");
  start_writers();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(mkdir(path("d").c_str(), 0755), 0);
    EXPECT_EQ(rename(path("d").c_str(), path("e").c_str()), 0);
    EXPECT_EQ(rmdir(path("e").c_str()), 0);
    EXPECT_EQ(get(path("read")), "content");
    EXPECT_EQ(stat_of(written_path(0)).st_size, 10'000);
  }
  EXPECT_FALSE(is_any_done()) << "a writer was not held";
  memory().pacer().disengage();
  wait_for_writers();
  for (std::size_t i = 0; i < writer_count(); ++i)
    EXPECT_EQ(get(written_path(i)), content(i));
}

TEST_F(FuseHeldWrites, go_on_when_the_mount_ends) {
  NACRE_NEEDS_MEMORY_VOLUME();
  start_writers();
  end();
  wait_for_writers();
  NACRE_EXPECT_OK(served_);
}

}  // namespace

}  // namespace nacre::tests
