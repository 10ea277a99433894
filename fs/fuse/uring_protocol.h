// SPDX-License-Identifier: Apache-2.0
// FUSE over io_uring as in the kernel's include/uapi/linux/fuse.h from 7.42 on. Debian 12's header
// (7.38) does not have it. The names here are Nacre's, and the layouts the kernel's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nacre::fs::protocol {

// In INIT's flags, of which those from bit 32 on are in flags2.
inline constexpr std::uint64_t flag_over_io_uring = std::uint64_t{1} << 41;

// For IORING_OP_URING_CMD on the descriptor of /dev/fuse. The queue gets a UringCommand.
enum class UringCommandCode : std::uint32_t {
  enter_entry = 1,       // a new entry, which waits for its first request
  commit_and_fetch = 2,  // the reply is in the entry, which waits for its next request
};

// Lies in the 80 bytes that an entry of 128 bytes has for commands.
struct UringCommand {
  std::uint64_t flags;
  std::uint64_t commit_id;
  std::uint16_t queue;  // the CPU's number
  std::uint8_t padding[6];
};
static_assert(sizeof(UringCommand) == 24);

struct UringEntryState {
  std::uint64_t flags;
  std::uint64_t commit_id;
  std::uint32_t payload_size_bytes;  // the used part of the payload buffer, in either direction
  std::uint32_t padding;
  std::uint64_t reserved;
};

// The header block of an entry. Its payload is a separate buffer.
struct UringHeader {
  std::uint8_t in_out[128];     // fuse_in_header, fuse_out_header
  std::uint8_t operation[128];  // the request's fixed part
  UringEntryState state;
};
static_assert(sizeof(UringHeader) == 288 && offsetof(UringHeader, state) == 256);

}  // namespace nacre::fs::protocol
