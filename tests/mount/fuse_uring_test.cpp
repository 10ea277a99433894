// SPDX-License-Identifier: Apache-2.0
// The rings of io_uring: how much memory they may take, what happens if the system refuses them,
// and how they end.
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <numeric>
#include <thread>

#include <fmt/format.h>

#include "fs/fuse/uring_plan.h"
#include "fs/fuse/uring_thread.h"
#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

using fs::plan_uring;
using fs::UringMachine;
using fs::UringMode;
using fs::UringPlan;

UringMachine machine(unsigned possible, unsigned own) {
  UringMachine result{
      .enabled = true, .possible_cpu_count = possible, .online_cpu_count = own, .own_cpus = {}};
  result.own_cpus.resize(own);
  std::iota(result.own_cpus.begin(), result.own_cpus.end(), 0u);
  return result;
}

std::size_t payload_bytes(const UringPlan& plan) {
  const std::size_t own = plan.own_cpus.size();
  return plan.payload_size_bytes *
         (own * plan.threads_per_cpu + (plan.queue_count - own) * plan.entries_per_foreign_queue);
}

TEST(UringPlan, memory_stays_bounded_on_every_machine) {
  for (const unsigned possible : {1u, 2u, 3u, 4u, 8u, 16u, 24u, 64u, 100u, 128u, 240u, 511u}) {
    for (const unsigned own : {1u, 2u, possible / 2, possible}) {
      if (own == 0 || own > possible) continue;
      const auto plan = plan_uring(machine(possible, own), UringMode::automatic);
      if (!plan) {
        EXPECT_GE(possible, 240u) << plan.error().message;
        continue;
      }
      EXPECT_LE(payload_bytes(*plan), fs::uring_payload_bytes_max) << possible << "/" << own;
      EXPECT_EQ(plan->queue_count, possible);
      EXPECT_EQ(plan->own_cpus.size(), own);
      // A request that waits leaves others a place.
      EXPECT_GE(plan->threads_per_cpu, 2u);
      EXPECT_GE(plan->entries_per_foreign_queue, 1u);
      // An extended attribute with its name fits.
      EXPECT_GE(plan->payload_size_bytes, 128u << 10);
    }
  }
  EXPECT_EQ(plan_uring(machine(2, 2), UringMode::automatic)->payload_size_bytes, 1u << 20);
  EXPECT_FALSE(plan_uring(machine(4096, 4096), UringMode::on)) << "no room for so many queues";
}

TEST(UringPlan, says_why_the_device_serves) {
  const auto reason = [](const UringMachine& of, UringMode mode) {
    const auto plan = plan_uring(of, mode);
    return plan ? std::string() : plan.error().message;
  };
  EXPECT_NE(reason(machine(2, 2), UringMode::off).find("io_uring=off"), std::string::npos);
  UringMachine other = machine(2, 2);
  other.enabled = false;
  EXPECT_NE(reason(other, UringMode::automatic).find("switched off"), std::string::npos);
  other.enabled = std::nullopt;
  EXPECT_NE(reason(other, UringMode::on).find("kernel"), std::string::npos);
  other = machine(8, 8);
  other.own_cpus = {3};  // a cpuset, or taskset
  EXPECT_NE(reason(other, UringMode::automatic).find("1 of 8"), std::string::npos);
  EXPECT_EQ(reason(other, UringMode::on), "");
  other.own_cpus.clear();
  EXPECT_NE(reason(other, UringMode::on), "");
}

// While such an object exists, the kernel's switch stays as it is: a test that changes the switch
// (fuse_over_uring.sh) locks it first.
class SwitchAsItIs {
 public:
  SwitchAsItIs() : file_(::open("/sys/module/fuse/parameters/enable_uring", O_RDONLY | O_CLOEXEC)) {
    if (file_ >= 0) {
      EXPECT_EQ(::flock(file_, LOCK_SH), 0);
    }
  }

 private:
  const File file_;
};

TEST(UringSwitch, is_roots) {
  const SwitchAsItIs as_it_is;
  const std::optional<bool> enabled = UringMachine::current().enabled;
  if (!enabled || *enabled) NACRE_SKIP("FUSE over io_uring is not switched off here");
  const auto code = [] {
    const Result<> done = fs::enable_uring();
    return done ? 0 : static_cast<int>(done.error().code) + 1;
  };
  const int refused = is_root() ? run_as(other_user, other_user, code) : code();
  EXPECT_EQ(refused, static_cast<int>(ErrorCode::permission) + 1);
}

TEST(UringToken, leads_back_and_is_no_number_of_the_kernels) {
  for (const std::uint32_t id : {0u, 1u, 77u, (1u << 20) - 1}) {
    for (const std::uint64_t generation : {std::uint64_t{1}, std::uint64_t{1} << 40, UINT64_MAX}) {
      const std::uint64_t token = fs::uring_token(id, generation);
      EXPECT_TRUE(fs::is_uring_token(token));
      EXPECT_EQ(fs::uring_id(token), id);
      EXPECT_EQ(token & std::uint64_t{1} << 63, 0u);  // a resent request's
    }
    EXPECT_NE(fs::uring_token(id, 1), fs::uring_token(id, 2));
  }
  EXPECT_FALSE(fs::is_uring_token(0));  // a notification
  EXPECT_FALSE(fs::is_uring_token(123456));
}

// A system that refuses one call, and counts how often it was made.
class RefusingSystem : public fs::UringSystem {
 public:
  int set_up(unsigned entry_count, io_uring& ring, io_uring_params& parameters) override {
    if (++set_ups == refused_set_up) return -EPERM;
    return UringSystem::set_up(entry_count, ring, parameters);
  }
  int stay_on(unsigned cpu) override {
    ++stays;
    return refuses_cpu ? EINVAL : UringSystem::stay_on(cpu);
  }
  void before_entering(fs::protocol::UringCommand& command) override {
    // No such queue: the kernel says EINVAL.
    if (++entered == refused_entry) command.queue = 60'000;
  }
  int refused_set_up = 0;
  int refused_entry = 0;
  bool refuses_cpu = false;
  std::atomic<int> set_ups{0}, stays{0}, entered{0};
};

// Each test mounts by itself, over io_uring where that can be.
class FuseUring : public FuseMount {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_fuse(); !why.empty()) NACRE_SKIP(why);
    if (const std::string why = why_no_uring(); !why.empty()) NACRE_SKIP(why);
    auto made = make_volume_under_test();
    ASSERT_TRUE(made) << made.error().message;
    volume_ = std::move(*made);
  }
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.uring = mode_;
    options.uring_system = system_;
    return options;
  }
  void expect_work_over(const std::string& transport) {
    mount();
    EXPECT_EQ(session_->transport_name(), transport);
    const std::string content(3u << 20, 'c');
    put(path("f"), content);
    EXPECT_EQ(fsync(File(path("f"), O_RDWR)), 0);
    EXPECT_EQ(get(path("f")), content);
    EXPECT_EQ(mkdir(path("d").c_str(), 0755), 0);
    EXPECT_EQ(rename(path("f").c_str(), path("d/f").c_str()), 0);
    EXPECT_EQ(stat_of(path("d/f")).st_size, 3 << 20);
  }

  const SwitchAsItIs switch_;
  UringMode mode_ = UringMode::automatic;
  std::shared_ptr<RefusingSystem> system_ = std::make_shared<RefusingSystem>();
};

TEST_F(FuseUring, is_taken_by_itself_where_the_kernel_offers_it) {
  expect_work_over("io_uring");
  EXPECT_GT(system_->set_ups, 0);
}

TEST_F(FuseUring, off_is_off) {
  mode_ = UringMode::off;
  expect_work_over("/dev/fuse");
  EXPECT_EQ(system_->set_ups, 0);
}

TEST_F(FuseUring, a_ring_that_cannot_be_set_up_leaves_the_device) {
  system_->refused_set_up = 2;
  expect_work_over("/dev/fuse");
  EXPECT_EQ(system_->entered, 0);
}

TEST_F(FuseUring, that_is_asked_for_and_cannot_be_set_up_is_an_error) {
  system_->refused_set_up = 1;
  mode_ = UringMode::on;
  folder_ = std::make_unique<ScratchFolder>();
  mount_point_ = folder_->path() + "/mnt";
  ASSERT_EQ(::mkdir(mount_point_.c_str(), 0755), 0);
  auto session = fs::FuseSession::create(volume_.served(), mount_point_, options());
  ASSERT_TRUE(session) << session.error().message;
  const Result<> served = (*session)->run();
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().code, ErrorCode::unsupported);
}

TEST_F(FuseUring, a_refused_entry_leaves_the_device) {
  system_->refused_entry = 1;
  expect_work_over("/dev/fuse");
}

TEST_F(FuseUring, a_last_queue_that_is_refused_leaves_the_device) {
  // The others have entries by then.
  system_->refused_entry = static_cast<int>(UringMachine::current().possible_cpu_count);
  if (UringMachine::current().own_cpus.size() < UringMachine::current().possible_cpu_count)
    NACRE_SKIP("a thread here serves several queues");
  expect_work_over("/dev/fuse");
}

TEST_F(FuseUring, further_threads_may_be_refused) {
  system_->refused_entry = static_cast<int>(UringMachine::current().possible_cpu_count) + 1;
  expect_work_over("io_uring");
}

TEST_F(FuseUring, threads_that_cannot_stay_on_their_cpu_serve_all_the_same) {
  system_->refuses_cpu = true;
  expect_work_over("io_uring");
  EXPECT_GT(system_->stays, 0);
}

// All of the fsyncs may come from one CPU.
TEST_F(FuseUring, many_pending_fsyncs_block_nobody) {
  NACRE_NEEDS_MEMORY_VOLUME();
  mount();
  ASSERT_EQ(session_->transport_name(), "io_uring");
  memory().hold_syncs(true);
  const int count_of_files = static_cast<int>(
      plan_uring(UringMachine::current(), UringMode::automatic)->threads_per_cpu - 2);
  std::vector<File> files;
  for (int i = 0; i < count_of_files; ++i) {
    files.emplace_back(path(fmt::format("f{}", i)), O_WRONLY | O_CREAT);
    ASSERT_EQ(write(files.back(), "x", 1), 1);
  }
  std::vector<std::atomic<int>> results(count_of_files);
  for (std::atomic<int>& result : results)
    result = -1;
  std::vector<std::thread> waiting;
  for (int i = 0; i < count_of_files; ++i)
    waiting.emplace_back([&, i] { results[i] = fsync(files[i]); });
  while (count(FUSE_FSYNC) < static_cast<std::uint64_t>(count_of_files))
    std::this_thread::yield();
  put(path("g"), "meanwhile");
  EXPECT_EQ(get(path("g")), "meanwhile");
  for (const std::atomic<int>& result : results)
    EXPECT_EQ(result, -1);
  memory().hold_syncs(false);
  for (std::thread& thread : waiting)
    thread.join();
  for (const std::atomic<int>& result : results)
    EXPECT_EQ(result, 0);
}

// A daemon is killed in the middle of requests: each waiting process gets an error and does not
// hang.
TEST_F(FuseUring, a_killed_daemon_leaves_enotconn) {
  if (!is_root()) NACRE_SKIP("a mount of another process needs root here");
  folder_ = std::make_unique<ScratchFolder>();
  mount_point_ = folder_->path() + "/mnt";
  ASSERT_EQ(::mkdir(mount_point_.c_str(), 0755), 0);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    MemoryVolume volume;
    volume.hold_syncs(true);
    auto session = fs::FuseSession::create(volume.served(), mount_point_, options());
    if (!session) _exit(1);
    const bool served = (*session)
                            ->run([&] {
                              const char over_rings =
                                  (*session)->transport_name() == "io_uring" ? 'u' : 'd';
                              (void)!::write(ends[1], &over_rings, 1);
                            })
                            .has_value();
    _exit(served ? 0 : 2);
  }
  ::close(ends[1]);
  char over = 0;
  ASSERT_EQ(read(ends[0], &over, 1), 1);
  ::close(ends[0]);
  EXPECT_EQ(over, 'u');
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(write(file, "x", 1), 1);
  int error = 0;
  std::thread waiting([&] { error = errno_of([&] { return fsync(file); }); });
  std::thread writing([&] {
    const std::string piece(1u << 20, 'w');
    const File other(path("g"), O_WRONLY | O_CREAT);
    while (write(other, piece.data(), piece.size()) > 0 && fdatasync(other) == 0) {
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(kill(daemon, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(daemon, &status, 0), daemon);
  waiting.join();
  writing.join();
  // The rings end shortly after their process.
  const auto is_passing = [](int value) { return value == ECANCELED || value == ECONNABORTED; };
  EXPECT_TRUE(error == ENOTCONN || is_passing(error)) << strerror(error);
  // A name that the kernel does not know: of "f" it may still answer by itself.
  const auto look = [&] { return errno_of([&] { return access(path("h").c_str(), F_OK); }); };
  for (int tries = 0; tries < 30'000 && is_passing(error = look()); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(error, ENOTCONN) << strerror(error);
}

}  // namespace

}  // namespace nacre::tests
