// SPDX-License-Identifier: Apache-2.0
// Finds out which system call makes the kernel ask for the attributes of an open file. The request
// does not say it. The kernel asks for a program that is about to write. It also asks for one that
// reads at the end of a file whose attributes have expired, or that looks for that end.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace nacre::fs {

enum class AskingCall : std::uint8_t {
  reads,    // read(2) and its variants, lseek(2)
  writes,   // write(2) and its variants
  unknown,  // another one (io_uring, sendfile), or /proc does not show it
};

// thread is the one in the header of a request that is not answered yet. The daemon must be
// allowed to trace it. Root is allowed to, and other users may trace their own programs unless the
// system forbids it.
AskingCall call_of(pid_t thread);

}  // namespace nacre::fs
