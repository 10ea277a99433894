// SPDX-License-Identifier: Apache-2.0
// What follows if the volume refuses pages that the kernel took from a program long before: the
// pages are dropped, the error is reported, and from then on the file's writers are asked.
#pragma once

#include <cstdint>
#include <string_view>

#include "fs/fuse/operations.h"

namespace nacre::fs {

// Called for a WRITE of pages from the kernel's cache, before it is answered with the error.
void note_late_refusal(Context& context, InodeNumber inode, std::uint64_t offset,
                       std::uint64_t size, ErrorCode error);

// Called before an fsync is answered. Returns the error as long as refused pages may still be
// shown. A program that opened the file after the kernel reported them must not be told that they
// are stored.
Result<> check_refused_pages(Context& context, InodeNumber inode);

// Whether the volume has little room, so that the kernel shall ask before it takes written bytes.
bool has_little_room(Context& context);

// Called when a write of such pages was taken. If there is little room, the next writer is asked.
void ask_from_now_on(Context& context, InodeNumber inode);
// For a file that was made or emptied and will be written now: how many seconds the attributes in
// the answer are valid. Without extended attributes nothing else makes the kernel ask before it
// takes written bytes (shown_blocks.h). process made or emptied the file.
std::uint32_t seconds_for_new_content(Context& context, InodeNumber inode, pid_t process);

// Called when the kernel asks for a file's attributes because a program is about to write
// (write_gate.h). Returns whether the question is more than one for attributes.
bool asks_to_write(Context& context, InodeNumber inode);
// Answers it: with an error, or with attributes once the volume has what the file's writers were
// promised before, and has room for all of this call. Readers that ask this way get attributes.
Result<> answer_asking_writer(Context& context, fuse_req_t request, fuse_ino_t inode);

// Called before the answer to a lookup, but takes effect after it. The kernel believes its own size
// of a file as long as it knows the inode. If the volume never got to that size, the kernel is made
// to forget the name, and with it the inode once no program has the file open.
void let_size_go(Context& context, InodeNumber inode, InodeNumber directory, std::string_view name);

// Called before an answer with the attributes of a file that a process looks at.
void keep_asking(Context& context, InodeNumber inode, bool is_regular, pid_t process);

}  // namespace nacre::fs
