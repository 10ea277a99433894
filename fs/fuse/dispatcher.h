// SPDX-License-Identifier: Apache-2.0
// Stands between transport and libfuse. It counts requests, answers raw ones, hands the others to
// libfuse, and carries libfuse's replies back. To the reply to INIT it adds what libfuse 3.14
// cannot say.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "fs/control/request_metrics.h"
#include "fs/fuse/fuse_library.h"
#include "fs/fuse/protocol.h"
#include "fs/fuse/read_queue.h"
#include "fs/fuse/transport.h"

namespace nacre::fs {

struct Context;

// The number of requests by the kernel's opcode.
using OpcodeCounts = std::array<std::uint64_t, protocol::opcode_count>;
// The name in <linux/fuse.h> without "FUSE_". Empty for an unknown number.
std::string_view opcode_name(std::uint32_t opcode);

class Dispatcher final : public RequestHandler {
 public:
  // initialised is called once, when the kernel has the answer to INIT and the mount is usable.
  // device_thread_count is the number of threads that bring requests from the device. Requests
  // without an answer are counted in metrics; the transport counts the others.
  Dispatcher(Context& context, fuse_session* session, Transport& transport, RequestMetrics& metrics,
             unsigned device_thread_count, std::function<void()> initialised);

  // Makes libfuse send through this object. Called after the mount, since libfuse keeps its
  // descriptor.
  Result<> connect();

  void handle(MutableByteView request, RequestSource source) noexcept override;
  // Takes what libfuse sends, through fuse_session_custom_io.
  ssize_t send(iovec* parts, int count) noexcept;

  // From now on every request is answered with ENOTCONN.
  void refuse_all() noexcept { refusing_ = true; }
  OpcodeCounts counts() const;

 private:
  void process(MutableByteView request) noexcept;
  void serve_reads(MutableByteView first, const RequestMark& mark) noexcept;
  void note_init(MutableByteView request) noexcept;
  void complete_init_reply(iovec* parts, int count) noexcept;

  Context& context_;
  fuse_session* const session_;
  Transport& transport_;
  RequestMetrics& metrics_;
  const std::function<void()> initialised_;
  ReadQueue reads_;
  // INIT comes first and alone, so these need no lock.
  std::atomic<std::uint64_t> init_unique_{0};
  std::uint64_t offered_flags_ = 0;
  bool over_rings_ = false;  // INIT agreed on the rings
  std::atomic<bool> refusing_{false};
  std::array<std::atomic<std::uint64_t>, protocol::opcode_count> counts_ = {};
};

}  // namespace nacre::fs
