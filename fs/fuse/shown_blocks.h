// SPDX-License-Identifier: Apache-2.0
// The blocks that stat shows of a file that is open for writing. The kernel keeps what programs
// wrote and counts no blocks of it; what it was told of a file's blocks it believes until the file
// is closed. So the daemon makes it forget that number, and nothing else, where it may be wrong
// later: when the kernel asks for the file's capability, which it does before the first write(2)
// after it was given attributes, and with each WRITE from its cache. Then stat is a GETATTR. Where
// the last that was heard of the file is such a question, or an fsync, the kernel may hold pages of
// it: they are written out before the answer.
//
// A mapping is written without any question, and that changes the blocks of a file with holes
// alone: attributes of such a file are good for no time at all, and what lies in its holes is
// always written out first.
#pragma once

#include <functional>

#include "fs/fuse/operations.h"

namespace nacre::fs {

// How long attributes are good for that are given to a program that looks. The kernel must be about
// to get them.
std::uint32_t seconds_of_attributes(Context& context, const Attributes& attributes);
// After an answer to a question that names an open file. A writer would ask each time if its
// attributes held for no time, so they hold, but for the blocks. Without extended attributes this
// question is the only one before the first write(2) to a new file.
void forget_blocks_for_writer(Context& context, const Attributes& attributes);

// The kernel may take writes to the file from now on without a further question: it has asked for
// what it looks at before the first one, or somebody who has the file open syncs it.
void expect_writes(Context& context, InodeNumber inode);
// A WRITE from the kernel's cache is about to be answered.
void note_written_back(Context& context, InodeNumber inode);

// Somebody looks at the file: whether the kernel is to write out first what it holds of it.
bool looks_at_unwritten(Context& context, const Attributes& attributes);
// Runs answer, which must not throw, once that has been written out, on a thread that may wait for
// it. The kernel hands the answer on and keeps nothing of it.
void answer_look(Context& context, InodeNumber inode, std::function<void()> answer);

}  // namespace nacre::fs
