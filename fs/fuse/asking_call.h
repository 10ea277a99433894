// SPDX-License-Identifier: Apache-2.0
// Which system call makes the kernel ask for the attributes of an open file. No request says it: a
// program that is about to write asks as one does that reads at the end of a file whose attributes
// have expired, or looks for that end.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace nacre::fs {

enum class AskingCall : std::uint8_t {
  reads,    // read(2) and its kin, lseek(2)
  writes,   // write(2) and its kin
  unknown,  // another one (io_uring, sendfile), or /proc does not tell
};

// thread: as the header of a request names it that is not answered yet. The daemon must be allowed
// to trace it: root is, and others are for their own programs unless the system forbids it.
AskingCall call_of(pid_t thread);

}  // namespace nacre::fs
