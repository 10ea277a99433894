// SPDX-License-Identifier: Apache-2.0
// File content: reading, allocating, seeking, copying, making durable. Writing is a raw request
// (raw_requests.cpp).
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "fs/fuse/late_refusal.h"
#include "fs/fuse/operations.h"
#include "fs/fuse/page_buffer.h"
#include "fs/fuse/set_id_bits.h"
#include "fs/fuse/shown_blocks.h"

namespace nacre::fs {

namespace {

using metadata::InodeNumber;

// One request copies at most this much, so that a program that asked for more can be stopped.
constexpr std::uint64_t copy_size_bytes_max = 64u << 20;

void reply_not_needed(fuse_req_t request, fuse_ino_t, fuse_file_info*) {
  fuse_reply_err(request, ENOSYS);  // the kernel stops sending OPEN and RELEASE, or FLUSH
}

void on_read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset,
             fuse_file_info*) {
  serve(request, "read", inode, [&](Context& context) -> Result<> {
    MutableByteView buffer = reply_buffer();
    if (buffer.empty()) return fail(ErrorCode::out_of_memory);
    buffer = buffer.first(std::min(size, buffer.size()));
    NACRE_ASSIGN(
        const FileBytes bytes,
        context.volume->view(InodeNumber{inode}, static_cast<std::uint64_t>(offset), buffer));
    std::vector<iovec> parts;
    parts.reserve(bytes.parts.size());
    for (const ByteView& part : bytes.parts)
      parts.push_back({const_cast<Byte*>(part.data()), part.size()});
    fuse_reply_iov(request, parts.data(), static_cast<int>(parts.size()));
    return {};
  });
}

// The volume's thread sends the reply, when the data is on the disk.
void sync(fuse_req_t request, std::string_view name, fuse_ino_t inode) {
  serve(request, name, inode, [&](Context& context) -> Result<> {
    NACRE_TRY(check_refused_pages(context, InodeNumber{inode}));
    expect_writes(context, InodeNumber{inode});
    context.pending.add();
    context.volume->sync_inode(InodeNumber{inode}, [&context, request, name, inode,
                                                    mark = RequestScope::current()](Result<> done) {
      const RequestScope scope(mark);
      if (done) {
        fuse_reply_err(request, 0);
      } else {
        reply_error(context, request, name, inode, done.error());
      }
      context.pending.done();
    });
    return {};
  });
}

void on_fsync(fuse_req_t request, fuse_ino_t inode, int, fuse_file_info*) {
  sync(request, "fsync", inode);
}

void on_fsyncdir(fuse_req_t request, fuse_ino_t inode, int, fuse_file_info*) {
  sync(request, "fsyncdir", inode);
}

// fallocate and copy_file_range change content, too. But for them the kernel neither drops the
// set-id bits nor says whether the caller may keep them.
Result<> drop_set_id_bits(Context& context, fuse_req_t request, InodeNumber inode) {
  NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(inode));
  if (!has_set_id_bits(attributes)) return {};
  const Requester requester = requester_of(request);
  if (!context.owners.hides_set_id() && has_capability(requester, CAP_FSETID)) return {};
  const ClearSetId which = set_id_bits_to_clear(context.owners, attributes, requester);
  NACRE_TRY(context.volume->change_attributes(inode, {.clear_set_id = which}));
  context.written_files.must_be_told(inode);
  context.kernel->forget_attributes(inode);
  return {};
}

Result<AllocateMode> allocate_mode(int flags) {
  switch (flags) {
    case 0:
      return AllocateMode::allocate;
    case FALLOC_FL_KEEP_SIZE:
      return AllocateMode::keep_size;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::punch_hole;
    case FALLOC_FL_ZERO_RANGE:
      return AllocateMode::zero;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::zero_keep_size;
    default:
      return fail(ErrorCode::unsupported);
  }
}

void on_fallocate(fuse_req_t request, fuse_ino_t inode, int flags, off_t offset, off_t length,
                  fuse_file_info*) {
  serve(request, "fallocate", inode, [&](Context& context) -> Result<> {
    NACRE_ASSIGN(const AllocateMode mode, allocate_mode(flags));
    const InodeNumber number{inode};
    NACRE_TRY(drop_set_id_bits(context, request, number));
    NACRE_TRY(context.volume->allocate(number, mode, static_cast<std::uint64_t>(offset),
                                       static_cast<std::uint64_t>(length)));
    fuse_reply_err(request, 0);
    return {};
  });
}

void on_copy_file_range(fuse_req_t request, fuse_ino_t from, off_t from_offset, fuse_file_info*,
                        fuse_ino_t to, off_t to_offset, fuse_file_info*, std::size_t length, int) {
  serve(request, "copy_file_range", to, [&](Context& context) -> Result<> {
    NACRE_TRY(drop_set_id_bits(context, request, InodeNumber{to}));
    NACRE_ASSIGN(
        const std::uint64_t copied,
        context.volume->copy_range(InodeNumber{from}, static_cast<std::uint64_t>(from_offset),
                                   InodeNumber{to}, static_cast<std::uint64_t>(to_offset),
                                   std::min<std::uint64_t>(length, copy_size_bytes_max)));
    answer_writer(context, InodeNumber{to}, copied,
                  [request, copied] { fuse_reply_write(request, copied); });
    return {};
  });
}

// The volume's answer is right, except for pages that the kernel has not handed over. Only pages in
// holes can change the answer, so only those are asked for, and data stays in the kernel's cache.
Result<std::uint64_t> seek_data(Context& context, InodeNumber inode, std::uint64_t offset) {
  const Result<std::uint64_t> known = context.volume->seek(inode, offset, SeekWhat::data);
  if (known && *known == offset) return known;
  if (!known && known.error().code != ErrorCode::no_position) return known;
  context.kernel->write_out_range(inode, offset, known ? *known - offset : 0);
  return context.volume->seek(inode, offset, SeekWhat::data);
}

// The end of a file that is being written moves on and on. After this many rounds the answer is a
// place that was the end at some moment of the call.
constexpr int seek_round_count_max = 16;

Result<std::uint64_t> seek_hole(Context& context, InodeNumber inode, std::uint64_t offset) {
  std::uint64_t from = offset;
  for (int round = 0; round < seek_round_count_max; ++round) {
    const Result<std::uint64_t> known = context.volume->seek(inode, from, SeekWhat::hole);
    if (!known && known.error().code != ErrorCode::no_position) return known;
    const std::uint64_t hole = known ? *known : from;
    const Result<std::uint64_t> next = context.volume->seek(inode, hole, SeekWhat::data);
    context.kernel->write_out_range(inode, hole, next && *next > hole ? *next - hole : 0);
    const Result<std::uint64_t> now = context.volume->seek(inode, from, SeekWhat::hole);
    if (now) {
      if (*now == hole) return now;
      from = *now;  // not a hole: go on from where the data ends now
      continue;
    }
    if (now.error().code != ErrorCode::no_position || from == offset) return now;
    break;  // the data goes on to the end, which is a hole, too
  }
  // The file may have been cut off in the meantime.
  NACRE_ASSIGN(const Attributes attributes, context.volume->attributes(inode));
  if (attributes.size <= offset) return fail(ErrorCode::no_position);
  return std::min(from, attributes.size);
}

void on_lseek(fuse_req_t request, fuse_ino_t inode, off_t offset, int whence, fuse_file_info*) {
  serve(request, "lseek", inode, [&](Context& context) -> Result<> {
    if (offset < 0) return fail(ErrorCode::no_position);
    if (whence != SEEK_DATA && whence != SEEK_HOLE) return fail(ErrorCode::invalid_argument);
    // Programs take this errno to mean "read all of it".
    if (!context.transport->may_wait_for_requests()) return fail(ErrorCode::unsupported);
    context.kernel->post([request, inode, offset, whence] {
      serve(request, "lseek", inode, [&](Context& answering) -> Result<> {
        const auto from = static_cast<std::uint64_t>(offset);
        const auto seek = whence == SEEK_DATA ? seek_data : seek_hole;
        NACRE_ASSIGN(const std::uint64_t found, seek(answering, InodeNumber{inode}, from));
        fuse_reply_lseek(request, static_cast<off_t>(found));
        return {};
      });
    });
    return {};
  });
}

}  // namespace

void add_data_operations(fuse_lowlevel_ops& operations) {
  operations.open = reply_not_needed;
  operations.flush = reply_not_needed;
  operations.read = on_read;
  operations.fsync = on_fsync;
  operations.fsyncdir = on_fsyncdir;
  operations.fallocate = on_fallocate;
  operations.copy_file_range = on_copy_file_range;
  operations.lseek = on_lseek;
}

}  // namespace nacre::fs
