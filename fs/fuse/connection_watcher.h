// SPDX-License-Identifier: Apache-2.0
// A process that waits for the death of this one and then ends the connection to the kernel in the
// right way (connection_end.h). It is a separate program: of this process's memory it shares only
// the list of inodes that the kernel knows.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "fs/fuse/connection_end.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

class ConnectionWatcher {
 public:
  static constexpr const char* program_name = "nacre-watch";

  // Runs the daemon's own program under program_name. Its main() must call watch_connection().
  static Result<std::unique_ptr<ConnectionWatcher>> start(const Connection& connection,
                                                          const KnownInodes& known);
  // Ends the watcher, and with it its hold on the connection.
  ~ConnectionWatcher();

 private:
  ConnectionWatcher(pid_t process, int life) : process_(process), life_(life) {}
  const pid_t process_;
  const int life_;  // closed by the kernel when this process ends
};

// Whether a program that was started with these arguments is the watcher.
bool is_connection_watcher(int count, char** arguments);
int watch_connection(int count, char** arguments);

}  // namespace nacre::fs
