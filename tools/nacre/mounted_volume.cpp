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
  // The next question to the daemon ends in words that say that it is gone.
  if (descriptor < 0 && fs::is_end_of_connection(errno)) return {};
  if (descriptor < 0) {
    return fail(errno == EACCES ? ErrorCode::permission : ErrorCode::io,
                fmt::format("{}: {}", mountpoint, strerror(errno)));
  }
  // Its errors are old ones, or of somebody who was killed: what the volume refused the daemon
  // tells.
  static_cast<void>(::syncfs(descriptor));
  ::close(descriptor);
  return {};
}

}  // namespace nacre::tools
