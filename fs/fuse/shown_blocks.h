// SPDX-License-Identifier: Apache-2.0
// The number of blocks that stat shows for a file that is open for writing. The kernel caches
// written bytes and counts no blocks for them. It believes the number that it was told until the
// file is closed. So the daemon makes it forget that number, and nothing else, at moments when it
// may become wrong. These are each WRITE from the kernel's cache, and each question for the file's
// capability, which comes before the first write(2) after the kernel got attributes. Then stat
// sends a GETATTR. If the last request for the file was such a question, or an fsync, the kernel
// may hold pages of it, and they are written out before the answer.
//
// A mapping is written without any question. That changes only the blocks of a file with holes. So
// attributes of such a file are not valid for any time, and pages in its holes are always written
// out first.
#pragma once

#include <functional>

#include "fs/fuse/operations.h"

namespace nacre::fs {

// The number of seconds for which the kernel may keep attributes that it gets because a program
// looks at the file. The kernel must be about to get them.
std::uint32_t seconds_of_attributes(Context& context, const Attributes& attributes);
// Called after the answer to a question that names an open file. If attributes were valid for no
// time, a writer would ask each time, so they are valid except for the blocks. Without extended
// attributes this question is the only one before the first write(2) to a new file.
void forget_blocks_for_writer(Context& context, const Attributes& attributes);

// Notes that the kernel may take writes to the file from now on without a further question: it has
// asked for what it needs before the first one, or a process that has the file open syncs it.
void expect_writes(Context& context, InodeNumber inode);
// Notes that a WRITE from the kernel's cache is about to be answered.
void note_written_back(Context& context, InodeNumber inode);

// Called when a process looks at the file. Returns whether the kernel has to write out its pages
// first.
bool looks_at_unwritten(Context& context, const Attributes& attributes);
// Writes those pages out and then runs answer, which must not throw, on a thread that may wait for
// this. The kernel passes the answer on and keeps nothing of it.
void answer_look(Context& context, InodeNumber inode, std::function<void()> answer);

}  // namespace nacre::fs
