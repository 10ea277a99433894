// SPDX-License-Identifier: Apache-2.0
// The sockets of nacre web: a port of 127.0.0.1 and, if it is free there, of ::1; or a Unix socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/backing/posix_file.h"

namespace nacre::tools::web {

// Which file a path names.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
};

struct Listeners {
  std::vector<metadata::FileDescriptor> sockets;
  std::uint16_t port = 0;          // 0 for a Unix socket
  std::vector<std::string> hosts;  // that a request may name; empty for a Unix socket
  FileIdentity socket_file;        // for a Unix socket
};

// port 0: any free one. Errors: busy, permission, io.
Result<Listeners> listen_on_loopback(std::uint16_t port);
// Makes the socket with mode 0600. A socket there on which no process listens is replaced. The
// caller ends with remove_socket(). Errors: busy, permission, io, name_too_long.
Result<Listeners> listen_on_socket(const std::string& path);
// Removes the socket unless another one took its place.
void remove_socket(const std::string& path, const FileIdentity& file);

}  // namespace nacre::tools::web
