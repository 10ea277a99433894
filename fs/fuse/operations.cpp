// SPDX-License-Identifier: Apache-2.0
// Functions that all handlers share, and the features that are agreed on when the connection
// begins.
#include "fs/fuse/operations.h"

#include <sys/stat.h>

#include <future>

#include "fs/fuse/late_refusal.h"
#include "fs/fuse/protocol.h"
#include "fs/fuse/shown_blocks.h"

namespace nacre::fs {

namespace {

// The maximum number of the kernel's own requests (buffered reads, writing back) under way at once.
// Reads that wait for their disk count. When all of them are such reads, the kernel writes nothing
// back, so there are more than there are likely to be readers. A request that waits takes 80 bytes
// here.
constexpr unsigned background_request_count_max = 512;

void on_init(void* user_data, fuse_conn_info* connection) {
  Context& context = *static_cast<Context*>(user_data);
  const auto want = [connection](unsigned capability) {
    connection->want |= capability & connection->capable;
  };
  // The mount is the only writer, so the kernel may keep pages, sizes and times.
  want(FUSE_CAP_WRITEBACK_CACHE);
  want(FUSE_CAP_CACHE_SYMLINKS);
  want(FUSE_CAP_READDIRPLUS);
  if (!context.no_handles) want(FUSE_CAP_EXPORT_SUPPORT);
  // New files get their directory's default ACL instead of the umask.
  want(FUSE_CAP_DONT_MASK);
  if (!context.no_xattr) want(FUSE_CAP_POSIX_ACL);
  // ATOMIC_O_TRUNC: without OPEN messages O_TRUNC would be lost.
  // HANDLE_KILLPRIV: its version 2 takes its place, which the dispatcher adds.
  // AUTO_INVAL_DATA: no other process changes files.
  // ASYNC_DIO: the kernel drops cached pages when a direct write is handed in. It drops them again
  // only if the write is done by then. Pages that a reader brings in until a later end would stay,
  // and be written back.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_HANDLE_KILLPRIV |
                                             FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_DIO |
                                             FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_SPLICE_READ |
                                             FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  context.can_forget_blocks = connection->proto_minor >= protocol::minor_with_blocks_alone;
  connection->max_write = context.data_size_bytes_max;
  connection->max_background = background_request_count_max;
  connection->congestion_threshold = background_request_count_max * 3 / 4;
}

timespec to_timespec(const Timestamp& time) {
  return {.tv_sec = time.seconds, .tv_nsec = static_cast<long>(time.nanoseconds)};
}

}  // namespace

void PendingReplies::add() {
  LockGuard lock(mutex_);
  ++count_;
}

void PendingReplies::done() {
  LockGuard lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

void PendingReplies::wait_for_none() {
  UniqueLock lock(mutex_);
  none_.wait(lock, [this]() NACRE_REQUIRES(mutex_) { return count_ == 0; });
}

fuse_lowlevel_ops make_operations() {
  fuse_lowlevel_ops operations = {};
  operations.init = on_init;
  add_name_operations(operations);
  add_directory_operations(operations);
  add_attribute_operations(operations);
  add_xattr_operations(operations);
  add_data_operations(operations);
  return operations;
}

Context& context_of(fuse_req_t request) {
  return *static_cast<Context*>(fuse_req_userdata(request));
}

Caller caller_of(fuse_req_t request) {
  const fuse_ctx* caller = fuse_req_ctx(request);
  return {.uid = caller->uid, .gid = caller->gid, .umask = caller->umask};
}

Requester requester_of(fuse_req_t request) {
  const fuse_ctx* caller = fuse_req_ctx(request);
  return {.process = caller->pid, .uid = caller->uid, .gid = caller->gid};
}

Attributes OwnerView::apply(Attributes attributes) const {
  const bool is_regular = S_ISREG(attributes.mode);
  if (uid) {
    attributes.uid = *uid;
    if (is_regular) attributes.mode &= ~std::uint32_t{S_ISUID};
  }
  if (gid) {
    attributes.gid = *gid;
    if (is_regular) attributes.mode &= ~std::uint32_t{S_ISGID};
  }
  if (!S_ISLNK(attributes.mode)) attributes.mode &= ~hidden_bits;
  return attributes;
}

std::uint32_t block_size_of(const Context& context, const Attributes& attributes) {
  return S_ISREG(attributes.mode) ? context.block_size_bytes : 4096;
}

struct stat to_stat(const Context& context, const Attributes& stored) {
  const Attributes attributes = context.owners.apply(stored);
  struct stat result = {};
  result.st_ino = attributes.inode.value;
  result.st_mode = attributes.mode;
  result.st_nlink = attributes.link_count;
  result.st_uid = attributes.uid;
  result.st_gid = attributes.gid;
  result.st_rdev = attributes.rdev;
  result.st_size = static_cast<off_t>(attributes.size);
  result.st_blksize = static_cast<blksize_t>(block_size_of(context, attributes));
  result.st_blocks = static_cast<blkcnt_t>(attributes.blocks);
  result.st_atim = to_timespec(attributes.accessed);
  result.st_mtim = to_timespec(attributes.modified);
  result.st_ctim = to_timespec(attributes.changed);
  return result;
}

fuse_entry_param to_entry(Context& context, const Attributes& attributes) {
  // Inode numbers are never reused, so one generation is enough.
  return {.ino = attributes.inode.value,
          .generation = 0,
          .attr = to_stat(context, attributes),
          .attr_timeout = static_cast<double>(seconds_of_attributes(context, attributes)),
          .entry_timeout = context.write_gate.names_more(attributes.inode) ? 0 : cache_timeout};
}

void reply_entry(Context& context, fuse_req_t request, const Attributes& attributes) {
  const fuse_entry_param entry = to_entry(context, attributes);
  keep_asking(context, attributes.inode, S_ISREG(attributes.mode), requester_of(request).process);
  note_known(context, attributes.inode);
  if (fuse_reply_entry(request, &entry) != 0) context.volume->forget(attributes.inode, 1);
}

void reply_error(Context& context, fuse_req_t request, std::string_view name, fuse_ino_t inode,
                 const Error& error) noexcept {
  context.faults.note(*context.volume, name, metadata::InodeNumber{inode}, error);
  fuse_reply_err(request, to_errno(error.code));
}

Result<> settle_names(Context& context, fuse_ino_t directory) {
  if (!context.sync_names) return {};
  std::promise<Result<>> settled;
  context.volume->sync_inode(metadata::InodeNumber{directory},
                             [&settled](Result<> result) { settled.set_value(std::move(result)); });
  return settled.get_future().get();
}

}  // namespace nacre::fs
