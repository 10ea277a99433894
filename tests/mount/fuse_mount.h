// SPDX-License-Identifier: Apache-2.0
// A mounted volume in memory for tests, and helpers for using it. Nothing stays mounted, even if a
// test crashes: a child process waits for the end of the test and cleans up.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fs/fuse/fuse_session.h"
#include "tests/mount/volume_under_test.h"

namespace nacre::tests {

// Why mounting cannot be tested here; empty when it can.
std::string why_no_fuse();
// Why no mount here can be served over io_uring; empty when one can.
std::string why_no_uring();
// Ends the test with a visible line.
#define NACRE_SKIP(why)                                                                            \
  do {                                                                                             \
    const std::string nacre_why = (why);                                                           \
    std::cout << "skipped: "                                                                       \
              << ::testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() << "." \
              << ::testing::UnitTest::GetInstance()->current_test_info()->name() << ": "           \
              << nacre_why << std::endl;                                                           \
    GTEST_SKIP() << nacre_why;                                                                     \
  } while (false)

// For tests that steer the volume: nothing to see with another one.
#define NACRE_NEEDS_MEMORY_VOLUME() \
  if (!has_memory_volume()) GTEST_SKIP() << "steers the volume in memory"

// Owns a file descriptor.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(const std::string& path, int flags, mode_t mode = 0644);
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() { close(); }
  void close();
  operator int() const { return fd_; }

 private:
  int fd_ = -1;
};

// A folder of its own below TMPDIR, removed with what is in it; a mount on it is taken away first.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int alive_ = -1;  // the write end of the janitor's pipe
  pid_t janitor_ = -1;
};

class FuseMount : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  virtual Result<VolumeUnderTest> make_volume() const { return make_volume_under_test(); }
  // The options of the mount. Tests override it.
  virtual fs::FuseOptions options() const;

  // Mounts, or fails the test.
  void mount();
  // Asks for the end and waits for it.
  void end();
  bool is_over_uring() const { return session_->transport_name() == "io_uring"; }
  // Waits until run() has returned by itself.
  void wait_for_end();

  std::string path(std::string_view name) const { return mount_point_ + "/" + std::string(name); }
  std::uint64_t count(std::uint32_t opcode) const { return session_->opcode_counts()[opcode]; }
  // Sums over several opcodes.
  std::uint64_t count(std::initializer_list<std::uint32_t> opcodes) const;

  fs::Volume& volume() { return volume_.volume(); }
  bool has_memory_volume() const { return volume_.memory != nullptr; }
  MemoryVolume& memory() { return *volume_.memory; }
  // The volume's count of inodes. It includes inodes that lost their name and are still in use.
  std::uint64_t inode_count() {
    return has_memory_volume() ? memory().inode_count()
                               : volume_.real.mounted().stats().inode_count;
  }

  VolumeUnderTest volume_;
  std::unique_ptr<ScratchFolder> folder_;
  std::string mount_point_;
  std::unique_ptr<fs::FuseSession> session_;
  std::thread server_;
  Result<> served_ = {};
};

// The file's inode.
metadata::InodeNumber inode_of(const std::string& path);
struct stat stat_of(const std::string& path);
void put(const std::string& path, std::string_view content, mode_t mode = 0644);
std::string get(const std::string& path);
// Unmaps a shared mapping of a file in a mount that this process serves. munmap(2) writes out the
// times of a file that was written by the mapping, and holds the process's lock on its memory while
// it waits for the answer. A serving thread that has a page fault then never answers, and the
// process cannot be killed. So what is dirty is written out before.
void unmap(void* mapped, std::size_t size);
// 0 or errno.
template <typename Call>
int errno_of(Call call) {
  errno = 0;
  return call() < 0 ? errno : 0;
}

inline constexpr uid_t other_user = 12345;
// Runs body in a child process as an ordinary user. Its result (0 to 255) is the child's; 255 also
// when it crashed.
int run_as(uid_t user, gid_t group, const std::function<int()>& body,
           const std::vector<gid_t>& further_groups = {});
inline bool is_root() {
  return geteuid() == 0;
}
// Makes the kernel forget clean pages, names and inodes. Root only.
void drop_kernel_caches();
// Runs `work` several times, and returns the fewest messages that `messages` counted. Stops at the
// first run with at most `enough`. For promises that hold while the kernel remembers something,
// which other processes may make it forget.
std::uint64_t fewest(std::uint64_t enough, const std::function<std::uint64_t()>& messages,
                     const std::function<void()>& work);

}  // namespace nacre::tests
