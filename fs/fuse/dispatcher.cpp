// SPDX-License-Identifier: Apache-2.0
// The path of a request and of its reply.
#include "fs/fuse/dispatcher.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "fs/fuse/locked_requests.h"
#include "fs/fuse/operations.h"
#include "fs/fuse/protocol.h"
#include "fs/fuse/raw_requests.h"
#include "fs/fuse/uring_protocol.h"

namespace nacre::fs {

namespace {

struct OpcodeName {
  std::uint32_t opcode;
  std::string_view name;
};
constexpr OpcodeName opcode_names[] = {
    {FUSE_LOOKUP, "LOOKUP"},
    {FUSE_FORGET, "FORGET"},
    {FUSE_GETATTR, "GETATTR"},
    {FUSE_SETATTR, "SETATTR"},
    {FUSE_READLINK, "READLINK"},
    {FUSE_SYMLINK, "SYMLINK"},
    {FUSE_MKNOD, "MKNOD"},
    {FUSE_MKDIR, "MKDIR"},
    {FUSE_UNLINK, "UNLINK"},
    {FUSE_RMDIR, "RMDIR"},
    {FUSE_RENAME, "RENAME"},
    {FUSE_LINK, "LINK"},
    {FUSE_OPEN, "OPEN"},
    {FUSE_READ, "READ"},
    {FUSE_WRITE, "WRITE"},
    {FUSE_STATFS, "STATFS"},
    {FUSE_RELEASE, "RELEASE"},
    {FUSE_FSYNC, "FSYNC"},
    {FUSE_SETXATTR, "SETXATTR"},
    {FUSE_GETXATTR, "GETXATTR"},
    {FUSE_LISTXATTR, "LISTXATTR"},
    {FUSE_REMOVEXATTR, "REMOVEXATTR"},
    {FUSE_FLUSH, "FLUSH"},
    {FUSE_INIT, "INIT"},
    {FUSE_OPENDIR, "OPENDIR"},
    {FUSE_READDIR, "READDIR"},
    {FUSE_RELEASEDIR, "RELEASEDIR"},
    {FUSE_FSYNCDIR, "FSYNCDIR"},
    {FUSE_GETLK, "GETLK"},
    {FUSE_SETLK, "SETLK"},
    {FUSE_SETLKW, "SETLKW"},
    {FUSE_ACCESS, "ACCESS"},
    {FUSE_CREATE, "CREATE"},
    {FUSE_INTERRUPT, "INTERRUPT"},
    {FUSE_BMAP, "BMAP"},
    {FUSE_DESTROY, "DESTROY"},
    {FUSE_IOCTL, "IOCTL"},
    {FUSE_POLL, "POLL"},
    {FUSE_NOTIFY_REPLY, "NOTIFY_REPLY"},
    {FUSE_BATCH_FORGET, "BATCH_FORGET"},
    {FUSE_FALLOCATE, "FALLOCATE"},
    {FUSE_READDIRPLUS, "READDIRPLUS"},
    {FUSE_RENAME2, "RENAME2"},
    {FUSE_LSEEK, "LSEEK"},
    {FUSE_COPY_FILE_RANGE, "COPY_FILE_RANGE"},
    {FUSE_SYNCFS, "SYNCFS"},
    {FUSE_TMPFILE, "TMPFILE"},
    {protocol::opcode_statx, "STATX"},
};

ssize_t send_for_libfuse(int, iovec* parts, int count, void* user_data) {
  return static_cast<Context*>(user_data)->dispatcher->send(parts, count);
}

// libfuse demands a read hook, but requests reach it by fuse_session_process_buf.
ssize_t receive_for_libfuse(int, void*, std::size_t, void*) {
  errno = ENOTSUP;
  return -1;
}

// Requests that wait for a read from the disk. A copy writes, too, but no writer waits for it.
constexpr bool reads_the_disk(std::uint32_t opcode) {
  return opcode == FUSE_READ || opcode == FUSE_COPY_FILE_RANGE;
}

constexpr bool is_answered(std::uint32_t opcode) {
  return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

}  // namespace

std::string_view opcode_name(std::uint32_t opcode) {
  for (const OpcodeName& entry : opcode_names) {
    if (entry.opcode == opcode) return entry.name;
  }
  return {};
}

Dispatcher::Dispatcher(Context& context, fuse_session* session, Transport& transport,
                       RequestMetrics& metrics, unsigned device_thread_count,
                       std::function<void()> initialised)
    : context_(context),
      session_(session),
      transport_(transport),
      metrics_(metrics),
      initialised_(std::move(initialised)),
      reads_(device_thread_count) {}

Result<> Dispatcher::connect() {
  const fuse_custom_io hooks = {.writev = send_for_libfuse,
                                .read = receive_for_libfuse,
                                .splice_receive = nullptr,
                                .splice_send = nullptr};
  if (fuse_session_custom_io(session_, &hooks, fuse_session_fd(session_)) != 0) {
    return fail(ErrorCode::out_of_memory,
                "libfuse did not accept the functions for input and output");
  }
  return {};
}

void Dispatcher::handle(MutableByteView request, RequestSource source) noexcept {
  if (request.size() < sizeof(fuse_in_header)) return;  // the kernel sends no such request
  const auto header = load_le<fuse_in_header>(request.data());
  if (header.opcode < counts_.size()) {
    counts_[header.opcode].fetch_add(1, std::memory_order_relaxed);
  }
  const RequestMark mark{header.unique, header.opcode, std::chrono::steady_clock::now()};
  const RequestScope scope(mark);
  if (refusing_ && is_answered(header.opcode)) {
    return refuse_request(transport_, header.unique, ENOTCONN);
  }
  const RequestGate::Pass pass = context_.gate.enter(origin_of(request));
  if (!pass) return turn_away(context_, transport_, request);
  if (is_raw_request(header.opcode)) {
    answer_raw_request(context_, transport_, request);
    return;
  }
  if (source == RequestSource::device && reads_the_disk(header.opcode)) {
    serve_reads(request, mark);
    return;
  }
  if (header.opcode == FUSE_INIT) note_init(request);
  process(request);
  if (header.opcode == FUSE_FORGET || header.opcode == FUSE_BATCH_FORGET) metrics_.finished(mark);
}

void Dispatcher::note_init(MutableByteView request) noexcept {
  const auto header = load_le<fuse_in_header>(request.data());
  if (request.size() < sizeof header + sizeof(fuse_init_in)) return;
  const auto offer = load_le<fuse_init_in>(request.data() + sizeof header);
  offered_flags_ = offer.flags;
  if ((offer.flags & FUSE_INIT_EXT) != 0) offered_flags_ |= std::uint64_t{offer.flags2} << 32;
  init_unique_ = header.unique;
  const std::size_t ring_data_size = transport_.ring_data_size_bytes();
  over_rings_ = ring_data_size != 0 && (offered_flags_ & protocol::flag_over_io_uring) != 0;
  if (over_rings_) context_.data_size_bytes_max = static_cast<std::uint32_t>(ring_data_size);
}

void Dispatcher::process(MutableByteView request) noexcept {
  fuse_buf buffer = {};
  buffer.mem = request.data();
  buffer.size = request.size();
  fuse_session_process_buf(session_, &buffer);
}

void Dispatcher::serve_reads(MutableByteView first, const RequestMark& mark) noexcept {
  try {
    if (!reads_.begin(first, mark)) return;
  } catch (const std::bad_alloc&) {
    process(first);
    return;
  }
  process(first);
  while (auto waiting = reads_.next()) {
    const RequestScope scope(waiting->mark);
    process(waiting->request);
  }
}

ssize_t Dispatcher::send(iovec* parts, int count) noexcept {
  const auto* header = static_cast<const fuse_out_header*>(parts[0].iov_base);
  const std::uint64_t unique = init_unique_.load(std::memory_order_relaxed);
  const bool is_init_reply = unique != 0 && header->unique == unique;
  if (!is_init_reply) return transport_.send(parts, count);
  init_unique_ = 0;
  complete_init_reply(parts, count);
  const bool accepted = header->error == 0;
  const ssize_t sent = transport_.send(parts, count);
  if (sent >= 0 && accepted) {
    transport_.initialised(over_rings_);
    initialised_();
  }
  return sent;
}

void Dispatcher::complete_init_reply(iovec* parts, int count) noexcept {
  if (count < 2 || parts[1].iov_len < sizeof(fuse_init_out)) return;
  auto* reply = static_cast<fuse_init_out*>(parts[1].iov_base);
  constexpr std::uint32_t wanted =
      FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT | FUSE_PARALLEL_DIROPS;
  reply->flags |= wanted & static_cast<std::uint32_t>(offered_flags_);
  if (over_rings_) {
    reply->flags |= FUSE_INIT_EXT;
    reply->flags2 |= static_cast<std::uint32_t>(protocol::flag_over_io_uring >> 32);
  }
  // Without this flag the kernel still opens handles of inodes that it has in its cache.
  const std::uint64_t declined =
      context_.no_handles ? protocol::flag_no_export & offered_flags_ : std::uint64_t{0};
  if (declined != 0) {
    reply->flags |= FUSE_INIT_EXT;
    reply->flags2 |= static_cast<std::uint32_t>(declined >> 32);
  }
  context_.extended_setxattr = (reply->flags & FUSE_SETXATTR_EXT) != 0;
}

OpcodeCounts Dispatcher::counts() const {
  OpcodeCounts result = {};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = counts_[i].load(std::memory_order_relaxed);
  }
  return result;
}

}  // namespace nacre::fs
