// SPDX-License-Identifier: Apache-2.0
// The seam between the kernel's queues and the handling of requests: whoever receives requests and
// carries replies (today the threads of device_transport) against whoever answers them
// (dispatcher).
#pragma once

#include <sys/uio.h>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // One whole request: fuse_in_header and what follows. The bytes are the handler's until it
  // returns. The reply may come later, from any thread. Called on many threads at once.
  virtual void handle(MutableByteView request) noexcept = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Starts receiving; requests go to the handler until the connection ends.
  virtual Result<> start(RequestHandler& handler) = 0;
  // Sends one message (a reply, or a notification with unique 0) as writev(2) does: the bytes sent,
  // or -1 and errno. Any thread.
  virtual ssize_t send(const iovec* parts, int count) noexcept = 0;
  // Waits until the connection has ended and no request is being handled any more.
  virtual void join() = 0;
};

}  // namespace nacre::fs
