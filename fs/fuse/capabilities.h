// SPDX-License-Identifier: Apache-2.0
// What the kernel does not say in a request: the capabilities and groups of whoever made it. /proc
// tells them, of a thread that waits in the kernel for the answer and can neither change nor end
// meanwhile. Where /proc cannot be read, or shows somebody else, the answer is no.
#pragma once

#include <sys/types.h>

namespace nacre::fs {

// As a request's header names them: a thread, and the user and group for whom it acts.
struct Requester {
  pid_t process;
  uid_t uid;
  gid_t gid;
};

// Whether the capability (CAP_*) is in the thread's effective set, and counts here: the thread is
// in the daemon's own user namespace (in one of his own anybody has all capabilities), and acts for
// itself (a server of files, or a file system on top of this one, has more rights than the user
// for whom it asks).
bool has_capability(const Requester& requester, unsigned capability);

// Whether the group is one of the requester's. Groups count in every user namespace: nobody gets
// into one by making a namespace.
bool is_in_group(const Requester& requester, gid_t group);

}  // namespace nacre::fs
