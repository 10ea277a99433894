// SPDX-License-Identifier: Apache-2.0
// The seam between the kernel's queues and the handling of requests. On one side are the classes
// that receive requests and carry replies (device_transport, uring_transport), on the other side is
// the class that answers them (dispatcher).
#pragma once

#include <sys/uio.h>

#include <string>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// The source of a request.
enum class RequestSource {
  device,  // its thread may serve others before it reads the next request
  // Its reply goes when its thread is done with it; the thread serves it alone.
  ring,
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Handles one whole request: fuse_in_header and what follows. The bytes belong to the handler
  // until it returns. The reply may come later, from any thread. Called on many threads at once.
  virtual void handle(MutableByteView request, RequestSource source) noexcept = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Starts receiving; requests go to the handler until the connection ends.
  virtual Result<> start(RequestHandler& handler) = 0;
  // Sends one message (a reply, or a notification with unique 0) as writev(2) does. Returns the
  // number of bytes sent, or -1 with errno. Called on any thread.
  virtual ssize_t send(const iovec* parts, int count) noexcept = 0;
  // Asked if the answer to the request that this thread handles will wait for other requests. If it
  // returns false, those might find no place, so the thread must not wait. Called on threads inside
  // handle().
  virtual bool may_wait_for_requests() noexcept { return true; }
  // Whether the kernel has acted on a reply when send() returns. If not, it does so when the
  // answering thread goes back for the next request, and a notification that is sent in between
  // overtakes the reply.
  virtual bool sends_at_once() const noexcept { return true; }
  // Waits until the connection has ended and all requests are handled.
  virtual void join() = 0;
  // Ends the threads although the connection goes on. Each finishes the request that it handles.
  virtual void stop() = 0;

  // Puts new threads in the place of those that serve, so that no buffer, stack or thread-local
  // memory of theirs is left. Requests are served meanwhile. One call at a time. Errors:
  // unsupported, always, if renews_threads() is false; out_of_memory.
  virtual Result<> renew_threads() { return fail(ErrorCode::unsupported); }
  virtual bool renews_threads() const noexcept { return false; }

  // The maximum size of the data that a request over the kernel's rings carries. 0 if there are
  // none.
  virtual std::size_t ring_data_size_bytes() const noexcept { return 0; }
  // Called once, when the kernel has the answer to INIT, which agreed on the rings or not. Returns
  // when it is settled by which way requests come.
  virtual void initialised(bool /*over_rings*/) noexcept {}
  // The transport's name for users: "/dev/fuse", "io_uring". Called on any thread.
  virtual std::string name() const = 0;
};

}  // namespace nacre::fs
