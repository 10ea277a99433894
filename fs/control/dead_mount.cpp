// SPDX-License-Identifier: Apache-2.0
#include "fs/control/dead_mount.h"

#include <sys/statvfs.h>

#include <cerrno>

namespace nacre::fs {

bool is_end_of_connection(int error) {
  return error == ENOTCONN || error == ECONNABORTED || error == ECANCELED;
}

bool is_dead_mount(const std::string& mountpoint) {
  struct statvfs status = {};
  while (statvfs(mountpoint.c_str(), &status) != 0) {
    if (errno == ENOTCONN) return true;
    // The connection ended while this call waited. The next call gets the answer of a dead mount.
    if (!is_end_of_connection(errno)) return false;
  }
  return false;
}

}  // namespace nacre::fs
