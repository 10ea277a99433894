// SPDX-License-Identifier: Apache-2.0
// The start of the watcher, and the watcher's work.
#include "fs/fuse/connection_watcher.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace nacre::fs {

namespace {

// The descriptors that the watcher gets.
constexpr int fuse_descriptor = 3;
constexpr int known_descriptor = 4;
constexpr int life_descriptor = 5;
constexpr int descriptor_end = 6;
constexpr int argument_count =
    4;  // its name, the device's minor number, the mount point, transport
constexpr std::string_view word_for_rings = "io_uring";

class SpawnOptions {
 public:
  SpawnOptions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    // Keys that are pressed in a terminal must not send it signals.
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
  }
  ~SpawnOptions() {
    for (const int descriptor : copies_)
      close(descriptor);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  }
  void pass(int descriptor, int as) {
    // The number is higher than those that the watcher's descriptors get, so that none is
    // overwritten.
    const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, descriptor_end);
    if (copy < 0) return;  // the watcher misses it and ends
    copies_.push_back(copy);
    posix_spawn_file_actions_adddup2(&actions, copy, as);
  }

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

 private:
  std::vector<int> copies_;
};

}  // namespace

Result<std::unique_ptr<ConnectionWatcher>> ConnectionWatcher::start(const Connection& connection,
                                                                    const KnownInodes& known) {
  int life[2];
  if (pipe2(life, O_CLOEXEC) != 0) return fail(ErrorCode::io, "no pipe for the watcher");
  SpawnOptions options;
  options.pass(connection.fuse_descriptor, fuse_descriptor);
  options.pass(known.descriptor(), known_descriptor);
  options.pass(life[0], life_descriptor);
  std::string name = program_name, minor = connection.device_minor, place = connection.mount_point,
              transport(connection.over_rings ? word_for_rings : "device");
  char* const arguments[] = {name.data(), minor.data(), place.data(), transport.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t process = 0;
  const int error = posix_spawn(&process, "/proc/self/exe", &options.actions, &options.attributes,
                                arguments, environment);
  close(life[0]);
  if (error != 0) {
    close(life[1]);
    return fail(ErrorCode::io, fmt::format("no watcher: {}", std::strerror(error)));
  }
  return std::unique_ptr<ConnectionWatcher>(new ConnectionWatcher(process, life[1]));
}

ConnectionWatcher::~ConnectionWatcher() {
  // The watcher has nothing to finish. It is not ended by the pipe, since it may have been stopped.
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(life_);
}

bool is_connection_watcher(int count, char** arguments) {
  return count == argument_count &&
         std::string_view(arguments[0]) == ConnectionWatcher::program_name;
}

int watch_connection(int, char** arguments) {
  prctl(PR_SET_NAME, ConnectionWatcher::program_name);
  syscall(SYS_close_range, static_cast<unsigned>(descriptor_end), ~0u, 0u);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGPIPE})
    std::signal(signal, SIG_IGN);  // the end of a login session sends them
  if (chdir("/") != 0) return 1;   // keeps no directory busy
  auto known = KnownInodes::adopt(known_descriptor);
  if (!known) return 1;
  char nothing = 0;
  while (read(life_descriptor, &nothing, 1) < 0 && errno == EINTR) {
  }
  end_connection({.fuse_descriptor = fuse_descriptor,
                  .device_minor = arguments[1],
                  .mount_point = arguments[2],
                  .over_rings = arguments[3] == word_for_rings},
                 **known);
  return 0;
}

}  // namespace nacre::fs
