// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/shown_blocks.h"

#include <sys/stat.h>

#include <new>
#include <utility>

namespace nacre::fs {

namespace {

// If the kernel is made to write pages out, it writes them one by one. The answer waits for this
// many appended bytes. If the file is longer already, the rest is counted when it is written back.
constexpr std::uint64_t appended_bytes_max = 64u << 20;
// Past this many holes, all that follows is written out, also the data between them.
constexpr int hole_count_max = 64;

void write_out_unknown(Context& context, InodeNumber inode, std::uint64_t size) {
  std::uint64_t from = 0;
  for (int count = 0; from < size; ++count) {
    const Result<std::uint64_t> hole = context.volume->seek(inode, from, SeekWhat::hole);
    if (!hole || *hole >= size) break;
    const Result<std::uint64_t> data = context.volume->seek(inode, *hole, SeekWhat::data);
    const bool is_last = !data || *data <= *hole || count == hole_count_max;
    const std::uint64_t end = is_last ? size : *data;
    context.kernel->write_out_range(inode, *hole, end - *hole);
    from = end;
  }
  context.kernel->write_out_range(inode, size, appended_bytes_max);
}

}  // namespace

std::uint32_t seconds_of_attributes(Context& context, const Attributes& attributes) {
  const bool is_empty = S_ISREG(attributes.mode) && attributes.size == 0;
  if (!attributes.has_holes && !(context.no_xattr && is_empty)) return attributes_seconds;
  context.written_files.may_expire(attributes.inode);
  return 0;
}

void forget_blocks_for_writer(Context& context, const Attributes& attributes) {
  // If this notification overtook the answer, the answer would count as old. The kernel would keep
  // none of it, and each write would ask again.
  if (!context.can_forget_blocks || !context.transport->sends_at_once()) return;
  if (context.no_xattr) context.written_files.note(attributes.inode);
  if (context.no_xattr || attributes.has_holes) context.kernel->forget_blocks(attributes.inode);
}

void expect_writes(Context& context, InodeNumber inode) {
  if (!context.can_forget_blocks) return;
  context.written_files.note(inode);
  context.kernel->forget_blocks(inode);
}

void note_written_back(Context& context, InodeNumber inode) {
  const bool has_forgotten = context.written_files.take(inode);
  if (context.can_forget_blocks && !has_forgotten) context.kernel->forget_blocks(inode);
}

bool looks_at_unwritten(Context& context, const Attributes& attributes) {
  if (!S_ISREG(attributes.mode) || context.written_files.is_to_be_told(attributes.inode)) {
    return false;
  }
  if (!context.transport->may_wait_for_requests()) return false;
  return context.written_files.take(attributes.inode) || attributes.has_holes;
}

void answer_look(Context& context, InodeNumber inode, std::function<void()> answer) {
  context.looker->post([&context, inode, answer = std::move(answer)] {
    try {
      if (const Result<Attributes> before = context.volume->attributes(inode)) {
        write_out_unknown(context, inode, before->size);
      }
    } catch (const std::bad_alloc&) {
      // The blocks of pages that are not written out are not counted.
    }
    answer();
  });
}

}  // namespace nacre::fs
