// SPDX-License-Identifier: Apache-2.0
// Runs a command that the user configured. It gets a text on its standard input and answers on its
// standard output, within a limited time. It has no terminal, so it cannot ask the user.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

struct CommandRequest {
  // For /bin/sh; the argument follows it. It runs in "/", in a session without a terminal, with
  // this process's environment and standard error.
  std::string command;
  std::string argument;
  std::string_view input;
  std::size_t output_size_bytes_max = 0;
  std::chrono::milliseconds limit{0};
};

// Returns the output once the command has ended with status 0. Processes that it left behind are
// not waited for. Thread-safe. Errors: cancelled if it ended with another status, or not in time
// (then it is killed, with the processes of its group); too_big; io.
Result<std::string> run_bounded_command(const CommandRequest& request);

}  // namespace nacre::tools
