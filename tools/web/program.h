// SPDX-License-Identifier: Apache-2.0
// Runs a program of Nacre, or another one, as a child process: without a shell, without a terminal,
// with secrets through pipes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "tools/web/jobs.h"

namespace nacre::tools::web {

// A secret that the program reads from a file descriptor, which an option names
// ("--passphrase-fd"), or from its standard input.
inline constexpr const char* standard_input = "";
struct PipedSecret {
  std::string option;
  std::shared_ptr<const SecretBytes> secret;
};

struct ProgramRun {
  // The first word is "nacre", "mkfs.nacre", "mount.nacre" or "fsck.nacre", which are searched next
  // to this program first, or the name of another program in the search path.
  std::vector<std::string> words;
  std::vector<PipedSecret> secrets;  // options are appended; at most one is the standard input
  std::string fixed_error;           // the message if the program says nothing
};

struct ProgramResult {
  int exit_status = 0;
  std::string output;  // of standard output, at most 32 MiB
  std::string errors;  // the messages of standard error, at most 64 KiB, the last ones

  bool is_fine() const { return exit_status == 0; }
};

// Waits for the end. Cancelling the job sends SIGTERM to the program. Errors: cancelled; not_found
// if there is no such program; io.
Result<ProgramResult> run_program(const ProgramRun& run, Job& job);

// Starts a program and does not wait for it: the browser, a file manager.
Result<> launch_program(const std::vector<std::string>& words);

// The shell line of these words, quoted.
std::string shell_line(const std::vector<std::string>& words);

// The error that a program's exit status and last message tell (nacre(1), EXIT STATUS).
WebError program_error(const ProgramRun& run, const ProgramResult& result);

// run_program(), and the error if the exit status is none of those that are allowed.
tl::expected<ProgramResult, WebError> run_to_success(const ProgramRun& run, Job& job,
                                                     std::vector<int> allowed = {0});

}  // namespace nacre::tools::web
