// SPDX-License-Identifier: Apache-2.0
// The capabilities and groups of the process that made a request, which the request does not have.
// /proc shows them for a thread that waits in the kernel for the answer, and that can neither
// change nor end during this time. If /proc cannot be read, or shows another process, the answer is
// no.
#pragma once

#include <sys/types.h>

namespace nacre::fs {

// The requester as a request's header names it: a thread, and the user and group for whom it acts.
struct Requester {
  pid_t process;
  uid_t uid;
  gid_t gid;
};

// Whether the capability (CAP_*) is in the thread's effective set and counts here. It counts if the
// thread is in the daemon's own user namespace, since in a namespace of its own any process has all
// capabilities. And the thread must act for itself: a file server, or a file system on top of this
// one, has more rights than the user for whom it asks.
bool has_capability(const Requester& requester, unsigned capability);

// Whether the group is one of the requester's. Groups count in every user namespace, since no
// process gets into a group by making a namespace.
bool is_in_group(const Requester& requester, gid_t group);

}  // namespace nacre::fs
