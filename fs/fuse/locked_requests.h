// SPDX-License-Identifier: Apache-2.0
// Requests that come while the volume is being locked, or is locked.
#pragma once

#include "fs/fuse/request_gate.h"
#include "fs/fuse/transport.h"
#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

struct Context;

// Whether the kernel sends the request on its own, to hand over or forget what it has.
RequestGate::Origin origin_of(ByteView request) noexcept;

// Handles a request that got no pass. None waits: FORGET is kept for later, and all that have an
// answer are answered with EIO.
void turn_away(Context& context, Transport& transport, ByteView request) noexcept;

// Answers with an error and nothing else.
void refuse_request(Transport& transport, std::uint64_t unique, int error) noexcept;

}  // namespace nacre::fs
