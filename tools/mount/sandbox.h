// SPDX-License-Identifier: Apache-2.0
// Takes from this process the system calls that a daemon never makes once it serves, and by which
// an attacker in the daemon could reach the rest of the machine: running programs, tracing other
// processes, mounting, loading code into the kernel, the kernel's keyrings, and others. One table
// names them. Such a call fails with EPERM.
//
// The table forbids, and all else stays allowed. The daemon holds the only copy of what was written
// to it and is not committed yet, so a call that somebody forgot must not fail in the middle of a
// commit. Libraries, drivers and kernels bring new calls with each version. So a list of what is
// allowed would need a change for each, and would be noticed only by who loses data.
//
// io_uring's operations pass a filter. They reach files and sockets, but run no program.
#pragma once

#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

struct SandboxNeeds {
  bool runs_programs = false;  // for --witness-command; the filter holds for those programs as well
};

// The numbers of the calls that are taken away.
std::vector<int> forbidden_calls(const SandboxNeeds& needs);

// For all threads of this process and all that it starts from now on, for good. Only for processes
// with CAP_SYS_ADMIN: others would have to give up set-uid programs, and fusermount3 is one,
// without which they cannot unmount. Errors: unsupported if the kernel has no filters or this
// architecture has no table; not_permitted without the capability; io. After an error nothing has
// changed.
Result<> enter_sandbox(const SandboxNeeds& needs);

}  // namespace nacre::tools
