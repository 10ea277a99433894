// SPDX-License-Identifier: Apache-2.0
// See mounted_volume.h.
#include "tools/nacre/mounted_volume.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace nacre::tools {

Result<> write_back(const std::string& mountpoint) {
  const int descriptor = ::open(mountpoint.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Who asks the daemon next is told in words that it is gone.
  if (descriptor < 0 && errno == ENOTCONN) return {};
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
