// SPDX-License-Identifier: Apache-2.0
// The end of a connection that still has users. After it the kernel refuses what it would have to
// ask, but goes on answering from its caches: names, attributes, pages, and writes, which it takes
// into pages that will never be stored. So the kernel is made to forget all that. From then on each
// call fails with ENOTCONN, and a store into a mapping raises SIGBUS.
#pragma once

#include <string>

#include "fs/fuse/known_inodes.h"

namespace nacre::fs {

enum class Forget : unsigned char {
  // After this no name is found and no write() is taken. Waits for no request.
  attributes,
  everything,  // pages, too: waits for pages that are being written back
};
// For a connection that is aborted, or whose requests are still answered with ENOTCONN. Costs
// nothing if the file system is unmounted.
void make_kernel_forget(int fuse_descriptor, const KnownInodes& known, Forget what);

// Makes the kernel let go of the names and inodes that no program uses. It forgets them by
// requests, which may come later. Does nothing before Linux 6.18.
void drop_unused_inodes(int fuse_descriptor, const KnownInodes& known);

struct Connection {
  int fuse_descriptor = -1;
  std::string device_minor;
  std::string mount_point;
  bool over_rings = false;
};
// Aborts the connection, but leaves mount and descriptor. Returns false if only closing the
// descriptor can abort it.
bool abort_connection(const Connection& connection);
// Ends a connection whose daemon is gone, by its last descriptor. The mount stays in place: a file
// that is written below it by name must not land in the directory that it covers.
void end_connection(const Connection& connection, const KnownInodes& known);

}  // namespace nacre::fs
