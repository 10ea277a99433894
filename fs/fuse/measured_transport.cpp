// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/measured_transport.h"

#include "fs/fuse/protocol.h"

namespace nacre::fs {

ssize_t MeasuredTransport::send(const iovec* parts, int count) noexcept {
  const auto* header = static_cast<const fuse_out_header*>(parts[0].iov_base);
  metrics_.answered(header->unique, -header->error);
  return transport_.send(parts, count);
}

}  // namespace nacre::fs
