// SPDX-License-Identifier: Apache-2.0
// The requests that libfuse 3.14 cannot decode, answered from their bytes:
//   TMPFILE, STATX   libfuse does not know them
//   WRITE            libfuse drops FUSE_WRITE_KILL_SUIDGID
//   SETXATTR         libfuse does not know the present layout (FUSE_SETXATTR_EXT)
//   INTERRUPT        no operation here can be interrupted; ENOSYS makes the kernel stop sending it
#pragma once

#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

struct Context;
class Transport;

bool is_raw_request(std::uint32_t opcode);
// request is a whole request of such an opcode.
void answer_raw_request(Context& context, Transport& transport, ByteView request) noexcept;

}  // namespace nacre::fs
