// SPDX-License-Identifier: Apache-2.0
// What the kernel says of a mount whose daemon has ended.
#pragma once

#include <string>

namespace nacre::fs {

// Whether a system call on a mount failed since nobody serves that mount any more. ENOTCONN is the
// lasting answer; a call that waited while the connection ended gets ECONNABORTED, or ECANCELED
// over io_uring.
bool is_end_of_connection(int error);

// Asks the kernel, which asks the daemon: blocks as long as a daemon that lives does not answer.
// stat() would not do: its answer may come from the kernel's cache, long after the daemon ended.
bool is_dead_mount(const std::string& mountpoint);

}  // namespace nacre::fs
