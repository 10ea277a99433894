// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bounded_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

#include "metadata/backing/posix_error.h"
#include "metadata/backing/posix_file.h"

extern char** environ;

namespace nacre::tools {

namespace {

using metadata::FileDescriptor;
using Clock = std::chrono::steady_clock;

// A file in memory, because a command that does not read all of a pipe would stop the writer.
Result<FileDescriptor> file_with(std::string_view text) {
  FileDescriptor file(::memfd_create("input", MFD_CLOEXEC));
  if (!file) return metadata::fail_errno(errno, "memfd_create");
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return metadata::fail_errno(errno, "the command's input");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0)
    return metadata::fail_errno(errno, "the command's input");
  return file;
}

// The mask and the handlers of this process's signals are its own, and so is its terminal.
Result<pid_t> spawn(const CommandRequest& request, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addchdir_np(&actions, "/");
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  std::string shell = "sh", flag = "-c", script = request.command + " \"$1\"",
              argument = request.argument;
  char* arguments[] = {shell.data(), flag.data(),     script.data(),
                       shell.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/bin/sh", &actions, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail(ErrorCode::io, fmt::format("/bin/sh: {}", strerror(error)));
  return child;
}

// A process of this one. Its group is killed if it is still there at the end.
class Child {
 public:
  explicit Child(pid_t pid)
      : pid_(pid), descriptor_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u))) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ == 0) return;
    ::kill(-pid_, SIGKILL);
    wait();
  }
  const FileDescriptor& descriptor() const { return descriptor_; }
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
  FileDescriptor descriptor_;
};

// Takes what is there; false at the end.
Result<bool> take_output(int pipe, std::size_t size_max, std::string& output) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t got = ::read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got < 0) return metadata::fail_errno(errno, "the command's output");
    if (got == 0) return false;
    output.append(buffer.data(), static_cast<std::size_t>(got));
    if (output.size() > size_max) {
      return fail(ErrorCode::too_big,
                  fmt::format("the command printed more than {} bytes", size_max));
    }
  }
}

}  // namespace

Result<std::string> run_bounded_command(const CommandRequest& request) {
  const auto end = Clock::now() + request.limit;
  NACRE_ASSIGN(const auto input, file_with(request.input));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return metadata::fail_errno(errno, "pipe");
  const FileDescriptor pipe(ends[0]);
  FileDescriptor write_end(ends[1]);
  // Only this end does not block, since a command need not expect EAGAIN when it writes its output.
  if (::fcntl(pipe.get(), F_SETFL, O_NONBLOCK) != 0) return metadata::fail_errno(errno, "pipe");
  NACRE_ASSIGN(const pid_t pid, spawn(request, input.get(), write_end.get()));
  write_end = FileDescriptor();
  Child child(pid);
  if (!child.descriptor()) return metadata::fail_errno(errno, "pidfd_open");
  std::string output;
  bool has_more = true;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      return fail(ErrorCode::cancelled,
                  fmt::format("the command did not end within {} s",
                              std::chrono::ceil<std::chrono::seconds>(request.limit).count()));
    }
    pollfd waits[] = {{.fd = child.descriptor().get(), .events = POLLIN, .revents = 0},
                      {.fd = has_more ? pipe.get() : -1, .events = POLLIN, .revents = 0}};
    const int ready = ::poll(waits, std::size(waits), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return metadata::fail_errno(errno, "poll");
    if (ready <= 0) continue;
    if (has_more) {
      NACRE_ASSIGN(has_more, take_output(pipe.get(), request.output_size_bytes_max, output));
    }
    // The command has ended. All that it wrote was in the pipe by then, and has just been read.
    if (waits[0].revents != 0) break;
  }
  const int status = child.wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return fail(ErrorCode::cancelled,
              WIFEXITED(status)
                  ? fmt::format("the command ended with status {}", WEXITSTATUS(status))
                  : fmt::format("the command was ended by signal {}", WTERMSIG(status)));
}

}  // namespace nacre::tools
