// SPDX-License-Identifier: Apache-2.0
// Asynchronous direct writes at the same time as readers and writers that go through the kernel's
// cache.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

// A context for asynchronous requests (io_setup(2)), of one request at a time.
class AsyncWriter {
 public:
  AsyncWriter() { EXPECT_EQ(syscall(SYS_io_setup, 8, &context_), 0) << strerror(errno); }
  ~AsyncWriter() { syscall(SYS_io_destroy, context_); }
  // Hands the write in and waits for its end: the bytes written, or -errno.
  long write(int file, const void* bytes, std::size_t size, off_t offset) {
    iocb request = {};
    request.aio_lio_opcode = IOCB_CMD_PWRITE;
    request.aio_fildes = static_cast<std::uint32_t>(file);
    request.aio_buf = reinterpret_cast<std::uint64_t>(bytes);
    request.aio_nbytes = size;
    request.aio_offset = offset;
    iocb* requests[] = {&request};
    if (syscall(SYS_io_submit, context_, 1, requests) != 1) return -errno;
    io_event event = {};
    while (syscall(SYS_io_getevents, context_, 1, 1, &event, nullptr) != 1) {
      if (errno != EINTR) return -errno;
    }
    return static_cast<long>(event.res);
  }

 private:
  aio_context_t context_ = 0;
};

class FuseDirectWrite : public FuseMount {
 protected:
  static constexpr std::size_t size = 640u << 10;
  // Aligned as O_DIRECT wants it.
  struct Aligned {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  static std::unique_ptr<char, Aligned> aligned(char content) {
    auto* bytes = static_cast<char*>(std::aligned_alloc(4096, size));
    std::memset(bytes, content, size);
    return std::unique_ptr<char, Aligned>(bytes);
  }
  static std::string read_cached(const File& file) {
    std::string content(size, '\0');
    EXPECT_EQ(pread(file, content.data(), size, 0), static_cast<ssize_t>(size));
    return content;
  }
  std::string kept(std::string_view name) {
    std::string content(size, '\0');
    EXPECT_TRUE(volume().read(inode_of(path(name)), 0, as_writable_bytes(content)));
    return content;
  }

 private:
  static MutableByteView as_writable_bytes(std::string& text) {
    return {reinterpret_cast<Byte*>(text.data()), text.size()};
  }
};

// The reader comes while the daemon has the write in hand and has stored nothing of it yet.
TEST_F(FuseDirectWrite, of_aio_leaves_no_old_pages_behind) {
  NACRE_NEEDS_MEMORY_VOLUME();
  put(path("f"), std::string(size, 'o'));
  ASSERT_EQ(fsync(File(path("f"), O_RDWR)), 0);
  const File direct(path("f"), O_RDWR | O_DIRECT), cached(path("f"), O_RDWR);
  std::promise<void> arrived, go_on;
  std::atomic<bool> is_first{true};
  memory().before_writes(inode_of(path("f")),
                         [&, may_go = go_on.get_future().share()]() -> Result<> {
                           if (is_first.exchange(false)) {
                             arrived.set_value();
                             may_go.wait();
                           }
                           return {};
                         });
  const auto fresh = aligned('n');
  auto written = std::async(std::launch::async,
                            [&] { return AsyncWriter().write(direct, fresh.get(), size, 0); });
  arrived.get_future().wait();
  EXPECT_EQ(read_cached(cached), std::string(size, 'o'));
  go_on.set_value();
  EXPECT_EQ(written.get(), static_cast<long>(size));
  EXPECT_EQ(read_cached(cached), std::string(size, 'n'));
  // If the page in the cache were old, one new byte would write all its old bytes back to the
  // volume.
  ASSERT_EQ(pwrite(cached, "x", 1, 1), 1);
  ASSERT_EQ(fsync(cached), 0);
  EXPECT_EQ(kept("f"), "nx" + std::string(size - 2, 'n'));
}

TEST_F(FuseDirectWrite, of_aio_is_seen_by_whoever_reads_all_the_while) {
  put(path("f"), std::string(size, 'o'));
  const File direct(path("f"), O_RDWR | O_DIRECT), cached(path("f"), O_RDONLY);
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      const File own(path("f"), O_RDONLY);
      while (!done)
        read_cached(own);
    });
  }
  AsyncWriter writer;
  const auto bytes = aligned('o');
  for (int round = 0; round < 300; ++round) {
    const char content = static_cast<char>('a' + round % 26);
    std::memset(bytes.get(), content, size);
    ASSERT_EQ(writer.write(direct, bytes.get(), size, 0), static_cast<long>(size));
    if (read_cached(cached) != std::string(size, content)) {
      ADD_FAILURE() << "round " << round << ": old bytes after a write that has ended";
      break;
    }
  }
  done = true;
  for (std::thread& reader : readers)
    reader.join();
}

}  // namespace

}  // namespace nacre::tests
