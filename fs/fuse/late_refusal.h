// SPDX-License-Identifier: Apache-2.0
// What follows when the volume refuses pages that the kernel took from a program long before: those
// pages go, the error is told, and the file's writers are asked from then on.
#pragma once

#include <cstdint>
#include <string_view>

#include "fs/fuse/operations.h"

namespace nacre::fs {

// Of a WRITE of pages from the kernel's cache, before it is answered with the error.
void note_late_refusal(Context& context, InodeNumber inode, std::uint64_t offset,
                       std::uint64_t size, ErrorCode error);

// Before an fsync is answered: the error as long as refused pages may still be shown. Whoever
// opened the file since the kernel told of them must not hear that they are stored.
Result<> check_refused_pages(Context& context, InodeNumber inode);

// A write of such pages was taken: where there is little room the next one is to be asked about.
void ask_from_now_on(Context& context, InodeNumber inode);
// Of a file that was made or emptied, and will be written now: how long the attributes in the
// answer are good for, in seconds. Without extended attributes nothing else makes the kernel ask
// before it takes what is written (shown_blocks.h). process: that made or emptied it.
std::uint32_t seconds_for_new_content(Context& context, InodeNumber inode, pid_t process);

// A program is about to write, and the kernel asks for the file's attributes (write_gate.h).
// Whether that is to be taken for more than a question for attributes.
bool asks_to_write(Context& context, InodeNumber inode);
// The answer: an error, or attributes once the volume has what was appended before. So no more than
// one call of write(2) is taken and refused later. Readers who ask this way get attributes.
Result<> answer_asking_writer(Context& context, fuse_req_t request, fuse_ino_t inode);

// Before the answer to a lookup, after which it happens. The kernel believes its own size of a file
// for as long as it knows the inode; where the volume never got to that size the kernel is to
// forget the name, and with it the inode once nobody has the file open.
void let_size_go(Context& context, InodeNumber inode, InodeNumber directory, std::string_view name);

// Before an answer with the attributes of a file that a process looks at.
void keep_asking(Context& context, InodeNumber inode, pid_t process);

}  // namespace nacre::fs
