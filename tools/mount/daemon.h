// SPDX-License-Identifier: Apache-2.0
// Becoming a daemon that its parent waits for: the command returns when the mount is usable, or
// with the exit code of what went wrong.
#pragma once

#include <functional>

namespace nacre::tools {

// How a daemon tells that it is ready. In the foreground there is nobody to tell.
class Readiness {
 public:
  Readiness() = default;
  explicit Readiness(int pipe) : pipe_(pipe) {}
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;
  ~Readiness();

  // A process group of its own and no terminal: from now on neither keys nor the end of a session
  // reach the daemon, and nobody can be asked.
  void leave_terminal();
  // Lets go of the standard streams, then tells the parent, which ends with 0. False when
  // the parent is gone: whoever started the mount has given up.
  bool announce();

 private:
  int pipe_ = -1;
};

// Forks; serve runs in the child, without descriptors of its own but the standard ones, which still
// lead to where the parent's do; until leave_terminal() it has the parent's terminal, too. Returns
// in the parent: 0 once serve has announced that it is ready, else serve's exit code. Call before
// any thread is started. In the child it does not return.
int run_as_daemon(const std::function<int(Readiness&)>& serve);

// While it lives, SIGTERM, SIGINT and SIGHUP call on_signal instead of ending the process; it must
// be made before other threads are, since they inherit its mask. on_signal runs on a thread of its
// own.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();
  // From now on; signals that came since the constructor count.
  void start(std::function<void(int signal)> on_signal);
  void stop();

 private:
  struct State;
  State* state_;
};

}  // namespace nacre::tools
