// SPDX-License-Identifier: Apache-2.0
// The mount that tests work on.
#include "tests/mount/fuse_mount.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

namespace nacre::tests {

std::string why_no_fuse() {
  const auto usable = fs::check_fuse(false, fs::MountEnvironment::current());
  return usable ? "" : usable.error().message;
}

std::string why_no_uring() {
  const auto plan = fs::plan_uring(fs::UringMachine::current(), fs::UringMode::automatic);
  return plan ? "" : plan.error().message;
}

namespace {

// NACRE_FUSE_TRANSPORT=io_uring: every mount of a test is to be over the rings.
bool needs_uring() {
  const char* transport = std::getenv("NACRE_FUSE_TRANSPORT");
  return transport != nullptr && std::string_view(transport) == "io_uring";
}

}  // namespace

File::File(const std::string& path, int flags, mode_t mode)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}

void File::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

ScratchFolder::ScratchFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base == nullptr ? "/tmp" : base) + "/nacre-fuse-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder " + name);
  path_ = name;
  chmod(path_.c_str(), 0755);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  janitor_ = fork();
  if (janitor_ == 0) {
    ::close(ends[1]);
    setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      std::signal(signal, SIG_IGN);
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR) {
    }
    (void)fs::unmount(path_ + "/mnt", fs::UnmountMode::detach, fs::MountEnvironment::current());
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    _exit(0);
  }
  ::close(ends[0]);
  alive_ = ends[1];
}

ScratchFolder::~ScratchFolder() {
  ::close(alive_);
  waitpid(janitor_, nullptr, 0);
}

void FuseMount::SetUp() {
  if (const std::string why = why_no_fuse(); !why.empty()) NACRE_SKIP(why);
  if (needs_uring()) {
    if (const std::string why = why_no_uring(); !why.empty()) NACRE_SKIP(why);
  }
  auto made = make_volume();
  ASSERT_TRUE(made) << made.error().message;
  volume_ = std::move(*made);
  mount();
  if (session_ && needs_uring()) {
    EXPECT_EQ(session_->transport_name(), "io_uring");
  }
}

fs::FuseOptions FuseMount::options() const {
  fs::FuseOptions options;
  options.allow_other = is_root();
  options.exit_grace_ms = 300;
  return options;
}

void FuseMount::mount() {
  folder_ = std::make_unique<ScratchFolder>();
  mount_point_ = folder_->path() + "/mnt";
  ASSERT_EQ(mkdir(mount_point_.c_str(), 0755), 0);
  auto session = fs::FuseSession::create(volume_.served(), mount_point_, options());
  ASSERT_TRUE(session) << session.error().message;
  session_ = std::move(*session);
  std::promise<void> ready;
  server_ =
      std::thread([this, &ready] { served_ = session_->run([&ready] { ready.set_value(); }); });
  ready.get_future().wait();
}

void FuseMount::end() {
  if (session_) session_->request_exit();
  wait_for_end();
}

void FuseMount::wait_for_end() {
  if (server_.joinable()) server_.join();
  EXPECT_TRUE(served_) << served_.error().message;
}

void FuseMount::TearDown() {
  end();
  session_.reset();
  folder_.reset();
  if (volume_.real) {
    const auto closed = volume_.real.mounted().close();
    EXPECT_TRUE(closed) << closed.error().message;
  }
}

std::uint64_t FuseMount::count(std::initializer_list<std::uint32_t> opcodes) const {
  std::uint64_t sum = 0;
  for (const std::uint32_t opcode : opcodes)
    sum += count(opcode);
  return sum;
}

struct stat stat_of(const std::string& path) {
  struct stat result = {};
  EXPECT_EQ(lstat(path.c_str(), &result), 0) << path << ": " << strerror(errno);
  return result;
}

metadata::InodeNumber inode_of(const std::string& path) {
  return metadata::InodeNumber{stat_of(path).st_ino};
}

void put(const std::string& path, std::string_view content, mode_t mode) {
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
  ASSERT_GE(file, 0) << path << ": " << strerror(errno);
  ASSERT_EQ(write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
}

void unmap(void* mapped, std::size_t size) {
  static_cast<void>(::msync(mapped, size, MS_SYNC));
  ::munmap(mapped, size);
}

std::string get(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

int run_as(uid_t user, gid_t group, const std::function<int()>& body,
           const std::vector<gid_t>& further_groups) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(further_groups.size(), further_groups.data()) != 0 || setgid(group) != 0 ||
        setuid(user) != 0)
      _exit(254);
    _exit(body());
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

void drop_kernel_caches() {
  std::ofstream file("/proc/sys/vm/drop_caches");
  file << 3;
}

std::uint64_t fewest(std::uint64_t enough, const std::function<std::uint64_t()>& messages,
                     const std::function<void()>& work) {
  std::uint64_t least = UINT64_MAX;
  for (int run = 0; run < 20 && least > enough; ++run) {
    const std::uint64_t before = messages();
    work();
    least = std::min(least, messages() - before);
  }
  return least;
}

}  // namespace nacre::tests
