// SPDX-License-Identifier: Apache-2.0
// Recognizes a mount whose daemon has ended by the errors that the kernel returns.
#pragma once

#include <string>

namespace nacre::fs {

// Whether this error of a system call on a mount means that no daemon serves the mount any more.
// The lasting error is ENOTCONN. A call that waited while the connection ended gets ECONNABORTED,
// or ECANCELED over io_uring.
bool is_end_of_connection(int error);

// Asks the kernel, which asks the daemon. Blocks until the daemon answers or ends. It does not use
// stat(), which the kernel may answer from its cache long after the daemon ended.
bool is_dead_mount(const std::string& mountpoint);

}  // namespace nacre::fs
