// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/mounted_volume.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "fs/control/dead_mount.h"

namespace nacre::tools {

Result<> write_back(const std::string& mountpoint) {
  const int descriptor = ::open(mountpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // The next request to the daemon reports that it is gone, or that the volume is locked.
  if (descriptor < 0 && (fs::is_end_of_connection(errno) || errno == EIO)) return {};
  if (descriptor < 0) {
    return fail(errno == EACCES ? ErrorCode::permission : ErrorCode::io,
                fmt::format("{}: {}", mountpoint, strerror(errno)));
  }
  // Errors of syncfs() may be old ones, or of a process that was killed. The daemon reports what
  // the volume refused.
  static_cast<void>(::syncfs(descriptor));
  ::close(descriptor);
  return {};
}

}  // namespace nacre::tools
