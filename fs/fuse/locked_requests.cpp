// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/locked_requests.h"

#include <cerrno>
#include <exception>
#include <optional>

#include <spdlog/spdlog.h>

#include "fs/fuse/operations.h"
#include "fs/fuse/protocol.h"

namespace nacre::fs {

namespace {

template <typename T>
std::optional<T> body_of(ByteView request, std::size_t offset = sizeof(fuse_in_header)) {
  if (request.size() < offset + sizeof(T)) return std::nullopt;
  return load_le<T>(request.data() + offset);
}

// What the kernel sends when it writes an inode's times back. A program may send the same, which
// does no harm.
constexpr std::uint32_t fields_of_times = FATTR_MTIME | FATTR_CTIME | FATTR_FH;

void keep(Context& context, std::uint64_t inode, std::uint64_t lookups) {
  while (!context.kept_forgets.note(context.gate, inode, lookups)) {
    // The gate has been opened meanwhile.
    const auto pass = context.gate.enter(RequestGate::Origin::kernel);
    if (pass) return forget(context, inode, lookups);
  }
}

void keep_batch(Context& context, ByteView request) {
  const auto batch = body_of<fuse_batch_forget_in>(request);
  std::size_t at = sizeof(fuse_in_header) + sizeof(fuse_batch_forget_in);
  for (std::uint32_t i = 0; batch && i < batch->count; ++i, at += sizeof(fuse_forget_one)) {
    const auto one = body_of<fuse_forget_one>(request, at);
    if (!one) return;
    keep(context, one->nodeid, one->nlookup);
  }
}

}  // namespace

RequestGate::Origin origin_of(ByteView request) noexcept {
  using Origin = RequestGate::Origin;
  switch (load_le<fuse_in_header>(request.data()).opcode) {
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
      return Origin::kernel;
    case FUSE_WRITE: {
      const auto body = body_of<fuse_write_in>(request);
      return body && (body->write_flags & FUSE_WRITE_CACHE) != 0 ? Origin::kernel : Origin::program;
    }
    case FUSE_SETATTR: {
      const auto body = body_of<fuse_setattr_in>(request);
      return body && (body->valid & ~fields_of_times) == 0 ? Origin::kernel : Origin::program;
    }
    default:
      return Origin::program;
  }
}

void turn_away(Context& context, Transport& transport, ByteView request) noexcept {
  const auto header = load_le<fuse_in_header>(request.data());
  try {
    switch (header.opcode) {
      case FUSE_FORGET:
        if (const auto body = body_of<fuse_forget_in>(request)) {
          keep(context, header.nodeid, body->nlookup);
        }
        return;
      case FUSE_BATCH_FORGET:
        return keep_batch(context, request);
      case FUSE_INTERRUPT:  // as when the volume is not locked
        return refuse_request(transport, header.unique, ENOSYS);
      default:
        return refuse_request(transport, header.unique, EIO);
    }
  } catch (const std::exception& exception) {
    spdlog::warn("an inode that the kernel has forgotten stays in memory: {}", exception.what());
  }
}

void refuse_request(Transport& transport, std::uint64_t unique, int error) noexcept {
  fuse_out_header reply = {};
  reply.len = sizeof reply;
  reply.error = -error;
  reply.unique = unique;
  const iovec part = {&reply, sizeof reply};
  transport.send(&part, 1);
}

}  // namespace nacre::fs
