// SPDX-License-Identifier: Apache-2.0
// A disk that is slow to read from delays readers, and no other calls.
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <latch>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "fs/fuse/read_queue.h"
#include "tests/mount/fuse_mount.h"
#include "tests/support/patience.h"

namespace nacre::tests {

namespace {

TEST(ReadQueue, leaves_threads_free_and_forgets_nothing) {
  for (const unsigned thread_count : {1u, 2u, 3u, 4u, 16u, 256u}) {
    fs::ReadQueue queue(thread_count);
    const Byte name{7};
    unsigned served = 0;
    while (queue.begin(ByteView(&name, 1), {}))
      ++served;
    if (thread_count > 1) {
      EXPECT_LE(served, thread_count - std::max(1u, thread_count / 4));
    }
    EXPECT_GE(served, std::max(1u, thread_count / 2));
    const Byte other{8};
    EXPECT_FALSE(queue.begin(ByteView(&other, 1), {}));
    EXPECT_EQ(queue.next().value().request, Bytes{name});  // in their order
    EXPECT_EQ(queue.next().value().request, Bytes{other});
    EXPECT_FALSE(queue.next().has_value());
    EXPECT_TRUE(queue.begin(ByteView(&name, 1), {})) << "a thread that is done counts no more";
  }
}

class FuseSlowReads : public FuseMount {
 protected:
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.thread_count = 4;
    return options;
  }

  // Over io_uring fewer than a CPU has places for requests.
  int reader_count() const { return is_over_uring() ? 6 : 20; }

  // Files that a disk keeps back from readers until it answers. The kernel has no page of them.
  void make_slow_files(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = slow_path(i);
      put(name, content(i));
      const File file(name, O_RDWR);
      ASSERT_EQ(fsync(file), 0);
      ASSERT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
      memory().before_reads(inode_of(name), [this, answers = answers_]() -> Result<> {
        if (begun_.fetch_add(1) < 3) reading_.count_down();
        answers.wait();
        return {};
      });
    }
  }
  std::string slow_path(int i) const { return path(fmt::format("slow{}", i)); }
  // Files much longer than the part that is read. If a file ends where a read ends, the kernel
  // makes all of it read-ahead. It leaves read-ahead out if it has many requests under way, and
  // then reads page by page, with requests that no limit counts.
  static std::string content(int i) { return std::string(64 << 10, static_cast<char>('a' + i)); }
  static constexpr std::size_t read_size = 8192;

  void read_slow_file(int i, int flags = O_DIRECT) {
    const File file(slow_path(i), O_RDONLY | flags);
    void* memory = std::aligned_alloc(4096, read_size);
    EXPECT_EQ(pread(file, memory, read_size, 0), read_size);
    EXPECT_EQ(std::string(static_cast<char*>(memory), read_size), content(i).substr(0, read_size));
    std::free(memory);
  }
  // By copy_file_range, as cp does.
  void copy_slow_file(int i) {
    const std::string name = path(fmt::format("copy{}", i));
    {
      const File from(slow_path(i), O_RDONLY);
      const File to(name, O_WRONLY | O_CREAT, 0644);
      EXPECT_EQ(copy_file_range(from, nullptr, to, nullptr, read_size, 0), read_size);
    }
    EXPECT_EQ(get(name), content(i).substr(0, read_size));
  }
  // Three threads of four wait for the disk; writers must not.
  void expect_writers_go_on() {
    reading_.wait();
    auto writing = std::async(std::launch::async, [this] {
      for (int i = 0; i < 100; ++i) {
        put(path("f"), std::string(100'000, 'w'));
        EXPECT_EQ(fsync(File(path("f"), O_RDWR)), 0);
        EXPECT_EQ(mkdir(path("d").c_str(), 0755), 0);
        EXPECT_EQ(rename(path("d").c_str(), path("e").c_str()), 0);
        EXPECT_EQ(rmdir(path("e").c_str()), 0);
      }
    });
    EXPECT_EQ(writing.wait_for(patience), std::future_status::ready) << "writers wait for readers";
    // Over io_uring there are more threads, so some are left in any case.
    if (!is_over_uring()) {
      EXPECT_EQ(begun_, 3);
    }
    answer();
    writing.wait();
  }
  void answer() { disk_.set_value(); }

  std::atomic<int> begun_{0};
  std::latch reading_{3};  // one thread of four is left

 private:
  std::promise<void> disk_;
  const std::shared_future<void> answers_ = disk_.get_future().share();
};

TEST_F(FuseSlowReads, do_not_keep_writers_waiting) {
  NACRE_NEEDS_MEMORY_VOLUME();
  make_slow_files(reader_count());
  std::vector<std::thread> readers;
  for (int i = 0; i < reader_count(); ++i)
    readers.emplace_back([this, i] { read_slow_file(i); });
  expect_writers_go_on();
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_EQ(begun_, reader_count());
}

TEST_F(FuseSlowReads, and_copies_do_not_keep_writers_waiting) {
  NACRE_NEEDS_MEMORY_VOLUME();
  make_slow_files(reader_count());
  std::vector<std::thread> readers;
  for (int i = 0; i < reader_count(); ++i) {
    readers.emplace_back([this, i] { i % 2 == 0 ? copy_slow_file(i) : read_slow_file(i); });
  }
  expect_writers_go_on();
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_GE(begun_, reader_count());  // a copy may read in several pieces
}

// The kernel reads the files with background requests, of which it has a limited number, and it
// writes back with the same. Over io_uring a CPU's places are fewer than those (docs/KERNEL.md).
TEST_F(FuseSlowReads, through_the_kernels_cache_do_not_keep_writers_waiting) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const int count = is_over_uring() ? reader_count() : 80;
  make_slow_files(count);
  const std::uint64_t before = this->count(FUSE_READ);
  std::vector<std::thread> readers;
  for (int i = 0; i < count; ++i)
    readers.emplace_back([this, i] { read_slow_file(i, 0); });
  for (int tries = 0; tries < 30'000 && this->count(FUSE_READ) < before + count; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(this->count(FUSE_READ), before + count) << "the kernel keeps requests back";
  expect_writers_go_on();
  for (std::thread& reader : readers)
    reader.join();
}

// Over io_uring more than a CPU has places for: what comes beyond waits in the kernel, writers too.
TEST_F(FuseSlowReads, and_writers_go_on_when_the_disk_answers) {
  NACRE_NEEDS_MEMORY_VOLUME();
  constexpr int count = 80;
  make_slow_files(count);
  std::vector<std::thread> others;
  for (int i = 0; i < count; ++i)
    others.emplace_back([this, i] { read_slow_file(i, 0); });
  reading_.wait();
  for (int i = 0; i < 8; ++i) {
    others.emplace_back([this, i] {
      const std::string name = path(fmt::format("f{}", i));
      put(name, std::string(100'000, 'w'));
      EXPECT_EQ(fsync(File(name, O_RDWR)), 0);
    });
  }
  answer();
  for (std::thread& other : others)
    other.join();
  EXPECT_GE(begun_, count);
}

// The kernel would look names of a directory up one after the other, were it not told otherwise.
TEST_F(FuseSlowReads, of_a_name_keep_no_other_name_of_its_directory_waiting) {
  NACRE_NEEDS_MEMORY_VOLUME();
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  std::latch looking_up(1);
  std::promise<void> disk;
  memory().before_lookups("slow", [&] {
    looking_up.count_down();
    disk.get_future().wait();
  });
  std::thread slow([this] { EXPECT_EQ(access(path("d/slow").c_str(), F_OK), -1); });
  looking_up.wait();
  auto others = std::async(std::launch::async, [this] {
    EXPECT_EQ(access(path("d/other").c_str(), F_OK), -1);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("d")), {}), 0);
  });
  EXPECT_EQ(others.wait_for(patience), std::future_status::ready)
      << "a directory's names wait for one that is slow";
  disk.set_value();
  slow.join();
  others.wait();
}

}  // namespace

}  // namespace nacre::tests
