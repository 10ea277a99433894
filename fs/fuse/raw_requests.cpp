// SPDX-License-Identifier: Apache-2.0
// Decoding and encoding without libfuse. Sizes and terminators are checked although only the kernel
// can write here.
#include "fs/fuse/raw_requests.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "fs/fuse/late_refusal.h"
#include "fs/fuse/operations.h"
#include "fs/fuse/protocol.h"
#include "fs/fuse/set_id_bits.h"
#include "fs/fuse/shown_blocks.h"
#include "fs/fuse/transport.h"

namespace nacre::fs {

namespace {

using metadata::InodeNumber;

// The destination of a request's answer. It outlives the request.
struct Answer {
  Transport* transport;
  std::uint64_t unique;

  // Returns false if the kernel did not take the answer.
  bool send(int error, const void* body, std::size_t size) const {
    fuse_out_header out = {};
    out.len = static_cast<std::uint32_t>(sizeof out + size);
    out.error = error;
    out.unique = unique;
    const iovec parts[] = {{&out, sizeof out}, {const_cast<void*>(body), size}};
    return transport->send(parts, size == 0 ? 1 : 2) >= 0;
  }
};

// A request's bytes, which are taken from the front.
class RawRequest {
 public:
  RawRequest(Context& context, Transport& transport, ByteView bytes)
      : context_(context), transport_(transport), rest_(bytes) {
    if (const auto header = take<fuse_in_header>()) header_ = *header;
  }
  Answer answer() const { return {.transport = &transport_, .unique = header_.unique}; }

  const fuse_in_header& header() const { return header_; }
  Requester requester() const {
    return {.process = static_cast<pid_t>(header_.pid), .uid = header_.uid, .gid = header_.gid};
  }
  Context& context() { return context_; }
  InodeNumber inode() const { return InodeNumber{header_.nodeid}; }
  ByteView rest() const { return rest_; }

  template <typename T>
  std::optional<T> take() {
    if (rest_.size() < sizeof(T)) return std::nullopt;
    const T value = load_le<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }
  // A string that ends in NUL.
  std::optional<std::string_view> take_name() {
    const auto end = std::find(rest_.begin(), rest_.end(), Byte{0});
    if (end == rest_.end()) return std::nullopt;
    const auto size = static_cast<std::size_t>(end - rest_.begin());
    const std::string_view name = as_text(rest_.first(size));
    rest_ = rest_.subspan(size + 1);
    return name;
  }

  // Returns false if the kernel did not take the reply.
  template <typename T>
  bool reply(const T& body) {
    return answer().send(0, &body, sizeof body);
  }
  bool reply_errno(int error) { return answer().send(-error, nullptr, 0); }

 private:
  Context& context_;
  Transport& transport_;
  ByteView rest_;
  fuse_in_header header_ = {};
};

tl::unexpected<Error> malformed() {
  return fail(ErrorCode::io, "the kernel sent a request that is too short");
}

Result<> answer_write(RawRequest& request) {
  const auto arguments = request.take<fuse_write_in>();
  if (!arguments || request.rest().size() < arguments->size) return malformed();
  Volume& volume = *request.context().volume;
  const InodeNumber inode = request.inode();
  const bool may_keep_set_id = (arguments->write_flags & FUSE_WRITE_KILL_SUIDGID) == 0 &&
                               !request.context().owners.hides_set_id();
  const bool is_write_back = (arguments->write_flags & FUSE_WRITE_CACHE) != 0;
  ClearSetId clear_set_id = ClearSetId::none;
  if (!may_keep_set_id) {
    NACRE_ASSIGN(const Attributes before, volume.attributes(inode));
    if (has_set_id_bits(before)) {
      clear_set_id = set_id_bits_to_clear(request.context().owners, before, request.requester());
    }
  }
  const Result<> written =
      volume.write(inode, arguments->offset, request.rest().first(arguments->size),
                   {.clear_set_id = clear_set_id, .is_taken = is_write_back});
  if (!written) {
    if (is_write_back) {
      note_late_refusal(request.context(), inode, arguments->offset, arguments->size,
                        written.error().code);
    }
    return written;
  }
  if (is_write_back) {
    note_written_back(request.context(), inode);
    ask_from_now_on(request.context(), inode);
  }
  // The reply carries no attributes, so the kernel would go on showing the old mode.
  if (clear_set_id != ClearSetId::none) {
    request.context().written_files.must_be_told(inode);
    request.context().kernel->forget_attributes(inode);
  }
  answer_writer(request.context(), inode, arguments->size,
                [answer = request.answer(), size = arguments->size] {
                  fuse_write_out reply = {};
                  reply.size = size;
                  answer.send(0, &reply, sizeof reply);
                });
  return {};
}

Result<> answer_setxattr(RawRequest& request) {
  if (request.context().no_xattr) {
    request.reply_errno(ENOSYS);
    return {};
  }
  const auto size = request.take<std::uint32_t>();
  const auto flags = request.take<std::uint32_t>();
  bool clear_sgid = false;
  if (request.context().extended_setxattr) {
    const auto extended_flags = request.take<std::uint64_t>();  // the upper half is padding
    clear_sgid = extended_flags && (*extended_flags & FUSE_SETXATTR_ACL_KILL_SGID) != 0;
  }
  const auto name = request.take_name();
  if (!size || !flags || !name || request.rest().size() < *size) return malformed();
  const bool create = (*flags & XATTR_CREATE) != 0;
  const bool replace = (*flags & XATTR_REPLACE) != 0;
  NACRE_TRY(request.context().volume->set_xattr(
      request.inode(), *name, as_text(request.rest().first(*size)),
      create ? XattrMode::create : (replace ? XattrMode::replace : XattrMode::set), clear_sgid));
  request.reply_errno(0);
  return {};
}

fuse_attr to_fuse_attr(const Context& context, const Attributes& stored) {
  const Attributes from = context.owners.apply(stored);
  fuse_attr to = {};
  to.ino = from.inode.value;
  to.size = from.size;
  to.blocks = from.blocks;
  to.atime = static_cast<std::uint64_t>(from.accessed.seconds);
  to.mtime = static_cast<std::uint64_t>(from.modified.seconds);
  to.ctime = static_cast<std::uint64_t>(from.changed.seconds);
  to.atimensec = from.accessed.nanoseconds;
  to.mtimensec = from.modified.nanoseconds;
  to.ctimensec = from.changed.nanoseconds;
  to.mode = from.mode;
  to.nlink = from.link_count;
  to.uid = from.uid;
  to.gid = from.gid;
  to.rdev = static_cast<std::uint32_t>(from.rdev);
  to.blksize = block_size_of(context, from);
  return to;
}

Result<> answer_tmpfile(RawRequest& request) {
  const auto arguments = request.take<fuse_create_in>();
  if (!arguments) return malformed();
  Context& context = request.context();
  const fuse_in_header& header = request.header();
  const Caller caller{.uid = header.uid, .gid = header.gid, .umask = arguments->umask};
  NACRE_ASSIGN(
      const Attributes made,
      context.volume->make_unnamed(request.inode(), caller, S_IFREG | (arguments->mode & 07777)));
  protocol::CreateOut reply = {};
  reply.entry.nodeid = made.inode.value;
  reply.entry.entry_valid = cache_seconds;
  reply.entry.attr_valid =
      seconds_for_new_content(context, made.inode, request.requester().process);
  reply.entry.attr = to_fuse_attr(context, made);
  reply.open.open_flags = FOPEN_KEEP_CACHE;
  note_known(context, made.inode);
  if (!request.reply(reply)) context.volume->forget(made.inode, 1);
  return {};
}

protocol::StatxTime to_statx_time(const Timestamp& time) {
  return {.seconds = time.seconds, .nanoseconds = time.nanoseconds, .reserved = 0};
}

protocol::StatxOut to_statx(Context& context, const Attributes& stored) {
  const Attributes from = context.owners.apply(stored);
  protocol::StatxOut reply = {};
  reply.valid_seconds = seconds_of_attributes(context, stored);
  protocol::Statx& to = reply.statx;
  to.mask = STATX_BASIC_STATS | STATX_BTIME;
  to.block_size = block_size_of(context, from);
  to.link_count = from.link_count;
  to.uid = from.uid;
  to.gid = from.gid;
  to.mode = static_cast<std::uint16_t>(from.mode);
  to.inode = from.inode.value;
  to.size = from.size;
  to.blocks = from.blocks;
  to.accessed = to_statx_time(from.accessed);
  to.born = to_statx_time(from.born);
  to.changed = to_statx_time(from.changed);
  to.modified = to_statx_time(from.modified);
  to.rdev_major = major(from.rdev);
  to.rdev_minor = minor(from.rdev);
  return reply;
}

Result<> answer_statx(RawRequest& request) {
  if (!request.take<protocol::StatxIn>()) return malformed();
  Context& context = request.context();
  const InodeNumber inode = request.inode();
  NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(inode));
  if (looks_at_unwritten(context, attributes)) {
    answer_look(context, inode,
                [&context, inode, answer = request.answer(), attributes,
                 process = request.requester().process] {
                  try {
                    const Result<Attributes> written = context.volume->attributes(inode);
                    const protocol::StatxOut reply =
                        to_statx(context, written ? *written : attributes);
                    keep_asking(context, inode, S_ISREG(attributes.mode), process);
                    answer.send(0, &reply, sizeof reply);
                  } catch (const std::bad_alloc&) {
                    answer.send(-ENOMEM, nullptr, 0);
                  }
                });
    return {};
  }
  const protocol::StatxOut reply = to_statx(context, attributes);
  keep_asking(context, inode, S_ISREG(attributes.mode), request.requester().process);
  request.reply(reply);
  return {};
}

struct RawHandler {
  std::uint32_t opcode;
  std::string_view name;
  Result<> (*answer)(RawRequest&);
};
constexpr RawHandler raw_handlers[] = {
    {FUSE_WRITE, "write", answer_write},
    {FUSE_SETXATTR, "setxattr", answer_setxattr},
    {FUSE_TMPFILE, "tmpfile", answer_tmpfile},
    {protocol::opcode_statx, "statx", answer_statx},
    {FUSE_INTERRUPT, "interrupt",
     [](RawRequest& request) -> Result<> {
       request.reply_errno(ENOSYS);
       return {};
     }},
};

const RawHandler* find_handler(std::uint32_t opcode) {
  for (const RawHandler& handler : raw_handlers) {
    if (handler.opcode == opcode) return &handler;
  }
  return nullptr;
}

}  // namespace

bool is_raw_request(std::uint32_t opcode) {
  return find_handler(opcode) != nullptr;
}

void answer_raw_request(Context& context, Transport& transport, ByteView bytes) noexcept {
  RawRequest request(context, transport, bytes);
  const RawHandler* handler = find_handler(request.header().opcode);
  if (handler == nullptr) return;
  const auto refuse = [&](const Error& error) {
    context.faults.note(*context.volume, handler->name, request.inode(), error);
    request.reply_errno(handler->opcode == FUSE_SETXATTR ? to_errno_of_xattr(error.code)
                                                         : to_errno(error.code));
  };
  try {
    if (const Result<> result = handler->answer(request); !result) refuse(result.error());
  } catch (const std::bad_alloc&) {
    refuse(Error{ErrorCode::out_of_memory});
  } catch (const std::exception& exception) {
    refuse(Error{ErrorCode::io, exception.what()});
  } catch (...) {
    refuse(Error{ErrorCode::io, "unknown exception"});
  }
}

}  // namespace nacre::fs
