// SPDX-License-Identifier: Apache-2.0
// The end of a connection that still has users. The kernel then refuses what it would have to ask,
// but goes on answering from what it keeps: names, attributes, pages, and writes, which it takes
// into pages that nobody will ever get. So it is made to forget all that: each call fails with
// ENOTCONN from then on, and a store into a mapping raises SIGBUS.
#pragma once

#include <string>

#include "fs/fuse/known_inodes.h"

namespace nacre::fs {

enum class Forget : unsigned char {
  attributes,  // no name is found and no write() taken any more; waits for no request
  everything,  // pages, too: waits for what is being written back
};
// Of a connection that is aborted, or whose requests somebody goes on answering with ENOTCONN.
// Costs nothing where the file system is unmounted.
void make_kernel_forget(int fuse_descriptor, const KnownInodes& known, Forget what);

struct Connection {
  int fuse_descriptor = -1;
  std::string device_minor;
  std::string mount_point;
  bool over_rings = false;
};
// Aborts it, but leaves mount and descriptor. False where only closing the descriptor can.
bool abort_connection(const Connection& connection);
// Ends one whose daemon is gone, by its last descriptor. The mount stays where it is: what is
// written below it by name must not land in the directory that it covers.
void end_connection(const Connection& connection, const KnownInodes& known);

}  // namespace nacre::fs
