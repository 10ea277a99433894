// SPDX-License-Identifier: Apache-2.0
// The seam between the kernel's queues and the handling of requests: whoever receives requests and
// carries replies (device_transport, uring_transport) against whoever answers them (dispatcher).
#pragma once

#include <sys/uio.h>

#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// Where a request came from.
enum class RequestSource {
  device,  // its thread may take others before it goes back for the next request
  ring,    // its reply goes when its thread does, which has taken it alone
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // One whole request: fuse_in_header and what follows. The bytes are the handler's until it
  // returns. The reply may come later, from any thread. Called on many threads at once.
  virtual void handle(MutableByteView request, RequestSource source) noexcept = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Starts receiving; requests go to the handler until the connection ends.
  virtual Result<> start(RequestHandler& handler) = 0;
  // Sends one message (a reply, or a notification with unique 0) as writev(2) does: the bytes sent,
  // or -1 and errno. Any thread.
  virtual ssize_t send(const iovec* parts, int count) noexcept = 0;
  // Asked where the answer to the request that this thread handles will wait for other requests.
  // False: those might find no place; it must not wait. On threads inside handle().
  virtual bool may_wait_for_requests() noexcept { return true; }
  // Whether the kernel has acted on a reply when send() returns. False: it does when the thread
  // that answers goes back for the next request, and a notification sent meanwhile overtakes the
  // reply.
  virtual bool sends_at_once() const noexcept { return true; }
  // Waits until the connection has ended and no request is being handled any more.
  virtual void join() = 0;
  // Ends the threads although the connection goes on: each finishes what it handles.
  virtual void stop() = 0;

  // The kernel's rings: the most data that a request over them carries; 0 when there are none.
  virtual std::size_t ring_data_size_bytes() const noexcept { return 0; }
  // Called once, when the kernel has the answer to INIT, which agreed on the rings or did not.
  // Returns when it is settled which way requests come.
  virtual void initialised(bool /*over_rings*/) noexcept {}
  // What serves, for people: "/dev/fuse", "io_uring". Any thread.
  virtual std::string name() const = 0;
};

}  // namespace nacre::fs
