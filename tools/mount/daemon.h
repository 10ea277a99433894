// SPDX-License-Identifier: Apache-2.0
// Becoming a daemon that its parent waits for: the command returns when the mount is usable, or
// with the exit code of what went wrong.
#pragma once

#include <functional>

namespace nacre::tools {

// How a daemon tells its parent that it is ready. In the foreground there is no parent to tell.
class Readiness {
 public:
  Readiness() = default;
  explicit Readiness(int pipe) : pipe_(pipe) {}
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;
  ~Readiness();

  // Gives up the terminal: from now on the daemon cannot ask anybody.
  void leave_terminal();
  // Begins a process group and lets go of the standard streams, so that neither keys nor the end of
  // a session reach the daemon, then tells the parent, which ends with 0. Returns false if the
  // parent is gone, because the user has given up the mount.
  //
  // Until then the daemon must be in the process group of its caller: if an automounter makes this
  // mount, the kernel lets only that group reach the mount point (docs/KERNEL.md, autofs). Another
  // process that walks there waits for the automounter, which waits for this mount.
  bool announce();

 private:
  int pipe_ = -1;
};

// Forks. serve runs in the child, which keeps only the standard descriptors; these lead to where
// the parent's do. Until leave_terminal() the child has the parent's terminal as well. Returns only
// in the parent: 0 once serve has announced that it is ready, else serve's exit code. Call it
// before any thread is started.
int run_as_daemon(const std::function<int(Readiness&)>& serve);

// While it lives, SIGTERM, SIGINT and SIGHUP call on_signal instead of ending the process. Make it
// before other threads, because they inherit its mask. on_signal runs on a thread of its own.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();
  // Handles signals from now on, and those that came since the constructor.
  void start(std::function<void(int signal)> on_signal);
  void stop();

 private:
  struct State;
  State* state_;
};

}  // namespace nacre::tools
