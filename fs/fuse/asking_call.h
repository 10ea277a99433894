// SPDX-License-Identifier: Apache-2.0
// Finds out which system call makes the kernel ask for the attributes of an open file, and how many
// bytes it brings. The request says neither. The kernel asks for a program that is about to write.
// It also asks for one that reads at the end of a file whose attributes have expired, or that looks
// for that end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace nacre::fs {

struct AskingCall {
  enum class Kind : std::uint8_t {
    reads,    // read(2) and its variants, lseek(2)
    writes,   // write(2) and its variants
    unknown,  // another one (io_uring, sendfile), or /proc does not show it
  };
  Kind kind = Kind::unknown;
  // What a writing call brings. 0: not known.
  std::uint64_t size_bytes = 0;
  // Its place in the file, if the call names one (pwrite(2) and its variants).
  std::optional<std::uint64_t> offset = {};
};

// thread is the one in the header of a request that is not answered yet. The daemon must be
// allowed to trace it. Root is allowed to, and other users may trace their own programs unless the
// system forbids it.
AskingCall call_of(pid_t thread);

}  // namespace nacre::fs
