// SPDX-License-Identifier: Apache-2.0
// Tries every forbidden call from within a process under the daemon's own filter.
#include "tools/mount/sandbox.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

extern char** environ;

namespace nacre::tools {
namespace {

constexpr int cannot_be_had = 77;

// Runs body in a process under the filter. Returns what body returned; or 1000 plus the number of
// the signal that ended the process; or cannot_be_had.
int under_filter(const SandboxNeeds& needs, const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (const auto entered = enter_sandbox(needs); !entered) {
      ::dprintf(STDERR_FILENO, "%s\n", entered.error().message.c_str());
      ::_exit(entered.error().code == ErrorCode::io ? 1 : cannot_be_had);
    }
    ::_exit(body());
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#define REQUIRE_FILTERS()                                                  \
  if (under_filter({}, [] { return 0; }) == cannot_be_had) {               \
    GTEST_SKIP() << "this process may not filter calls without giving up " \
                    "set-uid programs";                                    \
  }

// Makes the call with arguments with which it would do nothing if it were allowed.
long call(long number) {
  return ::syscall(number, -1L, -1L, -1L, -1L, -1L, -1L);
}

TEST(Sandbox, every_forbidden_call_fails_with_eperm) {
  REQUIRE_FILTERS();
  for (const bool runs_programs : {false, true}) {
    for (const int number : forbidden_calls({.runs_programs = runs_programs})) {
      EXPECT_EQ(under_filter({.runs_programs = runs_programs},
                             [&] { return call(number) == -1 && errno == EPERM ? 0 : 1; }),
                0)
          << "call " << number;
    }
  }
}

// Shows that the test above means something: without the filter the calls fail for another reason.
TEST(Sandbox, without_it_the_calls_fail_otherwise) {
  REQUIRE_FILTERS();
  for (const int number : {SYS_ptrace, SYS_execve, SYS_process_vm_readv, SYS_mount, SYS_unshare,
                           SYS_chroot, SYS_setns}) {
    errno = 0;
    EXPECT_EQ(call(number), -1);
    EXPECT_NE(errno, EPERM) << "call " << number;
  }
}

TEST(Sandbox, runs_no_program_unless_that_is_needed) {
  REQUIRE_FILTERS();
  const auto run_true = [] {
    std::string name = "true";
    char* arguments[] = {name.data(), nullptr};
    pid_t child = 0;
    if (const int error =
            ::posix_spawn(&child, "/bin/true", nullptr, nullptr, arguments, environ)) {
      return error;
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    return status;
  };
  EXPECT_EQ(under_filter({}, run_true), EPERM);
  EXPECT_EQ(under_filter({.runs_programs = true}, run_true), 0);
}

TEST(Sandbox, holds_for_threads_that_were_there_and_for_new_ones) {
  REQUIRE_FILTERS();
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int> stage{0};
    std::atomic<int> denied{0};
    const auto probe = [&] {
      if (call(SYS_ptrace) == -1 && errno == EPERM) ++denied;
    };
    std::thread before([&] {
      stage = 1;
      stage.notify_all();
      stage.wait(1);
      probe();
    });
    stage.wait(0);
    const bool entered = enter_sandbox({}).has_value();
    stage = 2;
    stage.notify_all();
    before.join();
    std::thread(probe).join();
    ::_exit(entered && denied == 2 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#ifdef __x86_64__
TEST(Sandbox, is_not_passed_by_the_calls_of_other_architectures) {
  REQUIRE_FILTERS();
  EXPECT_EQ(under_filter({}, [] { return call(0x40000000 + SYS_getpid) == -1 && errno == EPERM; }),
            1);
  // getpid of i386. A kernel without those calls sends a signal.
  const int ended = under_filter({}, [] {
    long result = 20;
    asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result == -EPERM ? 0 : 1;
  });
  EXPECT_TRUE(ended == 0 || ended == 1000 + SIGSEGV) << ended;
}
#endif

TEST(Sandbox, leaves_what_a_daemon_does) {
  REQUIRE_FILTERS();
  call(SYS_io_uring_setup);
  const bool has_rings = errno != EPERM;  // else the machine's administrator forbids them
  const auto body = [&] {
    int failures = 0;
    const int file = ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    failures += file < 0 && errno == EPERM;
    failures += ::fsync(file) != 0 && errno == EPERM;
    void* memory =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    failures += memory == MAP_FAILED;
    failures += ::mlock(memory, 4096) != 0 && errno == EPERM;
    std::thread([] {}).join();
    // These calls fail, but not because the filter forbids them.
    call(SYS_umount2);
    failures += errno == EPERM;
    call(SYS_io_uring_setup);
    failures += has_rings && errno == EPERM;
    failures += ::getpid() <= 0;
    return failures;
  };
  EXPECT_EQ(under_filter({}, body), 0);
}

}  // namespace
}  // namespace nacre::tools
