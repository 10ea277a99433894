// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/daemon.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <thread>

#include <fmt/format.h>

#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

namespace {

int run_serve(const std::function<int(Readiness&)>& serve, Readiness& readiness) {
  try {
    return serve(readiness);
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return exit_operational;
}

// The daemon must not keep what its caller had open, such as a lock or the end of a pipe.
void close_inherited(int kept) {
  const auto close_from = [](unsigned first, unsigned last) {
    if (first <= last) ::syscall(SYS_close_range, first, last, 0u);
  };
  const auto number = static_cast<unsigned>(kept);
  close_from(STDERR_FILENO + 1, number - 1);
  close_from(number + 1, ~0u);
}

void give_up_terminal() {
  const int terminal = ::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) return;
  ::ioctl(terminal, TIOCNOTTY);
  ::close(terminal);
}

[[noreturn]] void be_child(const std::function<int(Readiness&)>& serve, int pipe) {
  close_inherited(pipe);
  int code = exit_operational;
  {
    Readiness readiness(pipe);
    code = run_serve(serve, readiness);
  }
  std::fflush(nullptr);
  ::_exit(code);
}

// Waits until the child says that it is ready, or ends.
int wait_for(pid_t child, int pipe) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(pipe, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) return exit_fine;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  print_error(fmt::format("the daemon was ended by signal {} before the mount was usable",
                          WTERMSIG(status)));
  return exit_operational;
}

}  // namespace

Readiness::~Readiness() {
  if (pipe_ >= 0) ::close(pipe_);
}

void Readiness::leave_terminal() {
  if (pipe_ >= 0) give_up_terminal();
}

bool Readiness::announce() {
  if (pipe_ < 0) return true;
  // The daemon stays in its caller's session: the scheduler treats a session as a group
  // (autogroup), and if the callers of a file system are in another group than its threads, it
  // moves them to an idle CPU at every reply (docs/KERNEL.md, io_uring).
  ::setpgid(0, 0);
  ::chdir("/") == 0 ? void() : void();  // a daemon keeps no directory busy, if it can
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::dup2(null, stream);
    ::close(null);
  }
  const bool told = ::write(pipe_, "+", 1) == 1;
  ::close(pipe_);
  pipe_ = -1;
  return told;
}

int run_as_daemon(const std::function<int(Readiness&)>& serve) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    print_error(fmt::format("pipe: {}", strerror(errno)));
    return exit_operational;
  }
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) {
    print_error(fmt::format("fork: {}", strerror(errno)));
    ::close(ends[0]);
    ::close(ends[1]);
    return exit_operational;
  }
  if (child == 0) be_child(serve, ends[1]);
  ::close(ends[1]);
  const int code = wait_for(child, ends[0]);
  ::close(ends[0]);
  return code;
}

struct SignalWatch::State {
  sigset_t signals{};
  sigset_t before{};
  std::atomic<bool> stopping{false};
  std::thread thread;
};

SignalWatch::SignalWatch() : state_(new State) {
  sigemptyset(&state_->signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&state_->signals, signal);
  pthread_sigmask(SIG_BLOCK, &state_->signals, &state_->before);
  // If the reader of a pipe is gone, the write fails; the process must not end.
  std::signal(SIGPIPE, SIG_IGN);
}

SignalWatch::~SignalWatch() {
  stop();
  pthread_sigmask(SIG_SETMASK, &state_->before, nullptr);
  delete state_;
}

void SignalWatch::start(std::function<void(int)> on_signal) {
  state_->thread = std::thread([this, on_signal = std::move(on_signal)] {
    while (true) {
      int signal = 0;
      if (::sigwait(&state_->signals, &signal) != 0) continue;
      if (state_->stopping) return;
      on_signal(signal);
    }
  });
}

void SignalWatch::stop() {
  if (!state_->thread.joinable()) return;
  state_->stopping = true;
  ::pthread_kill(state_->thread.native_handle(), SIGTERM);
  state_->thread.join();
}

}  // namespace nacre::tools
