// SPDX-License-Identifier: Apache-2.0
// Reads large directories ahead of the programs that list them. When a thread has sent a reply, it
// loads the next piece of names and inodes while the kernel takes in that reply. (A separate thread
// would be woken before the reader is, and on the reader's processor.) Entries of a piece that did
// not fit into a reply are there for the next one.
//
// Pieces that are kept here are never out of date. They are read, kept and taken under the shared
// namespace lock. A thread that changes names holds this lock exclusively, and drops the pieces of
// the directory. Attributes are no part of a piece: it holds the inodes themselves. An inode in a
// piece has a name in its directory, so no piece keeps an inode whose last name is gone.
//
// Thread-safe. Its mutex is a leaf.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "fs/volume/inode_table.h"
#include "fs/volume/name_table.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// Entries of a directory in order, as NameTable::list() gives them.
struct ListPiece {
  InodeNumber directory;
  // The cookie after which the piece goes on: that of the last entry before next.
  std::uint64_t from = 0;
  std::vector<NameTable::Entry> entries;
  // The inodes of the entries; none for a small piece. Empty if unreadable.
  std::vector<InodeRef> inodes;
  std::size_t next = 0;  // the first entry that was not listed yet
  bool is_last = false;  // the directory ends with this piece
};

class ListAhead {
 public:
  // Smaller pieces are not worth it: a reply takes about as many entries, and most directories have
  // no more.
  static constexpr std::size_t entry_count_min = 128;
  static constexpr std::size_t entry_count_max = 1024;
  // Two for each of four readers. The oldest piece makes room for a new one.
  static constexpr std::size_t piece_count_max = 8;

  // Reads a piece and keeps it. Takes the namespace lock for both.
  using Read = std::function<void(InodeNumber directory, std::uint64_t from, std::size_t count)>;
  explicit ListAhead(Read read) : read_(std::move(read)) {}

  // Lets go of all inodes. From now on nothing is kept.
  void stop();

  // Notes that the piece is wanted soon, unless it is there already.
  void want(InodeNumber directory, std::uint64_t from, std::size_t count);
  // Reads the piece that was wanted first, if any is wanted. Called under no lock.
  void read_wanted();
  // Waits while another thread reads exactly this piece. Called under no lock.
  void wait_for(InodeNumber directory, std::uint64_t from);
  // Keep a piece, take out the piece that begins there (none if it is not kept), and drop all
  // pieces of a directory. Callers hold the namespace lock, those of drop() exclusively.
  void keep(ListPiece piece);
  std::optional<ListPiece> take(InodeNumber directory, std::uint64_t from);
  void drop(InodeNumber directory);

 private:
  struct Wish {
    InodeNumber directory;
    std::uint64_t from = 0;
    std::size_t count = 0;
    bool is_being_read = false;
    bool is_of(InodeNumber asked, std::uint64_t at) const {
      return directory == asked && from == at;
    }
  };
  std::list<Wish>::iterator find_wish(InodeNumber directory, std::uint64_t from)
      NACRE_REQUIRES(mutex_);

  const Read read_;
  std::atomic<std::size_t> piece_count_{0};
  Mutex mutex_;
  ConditionVariable done_;
  // The oldest first.
  std::list<ListPiece> pieces_ NACRE_GUARDED_BY(mutex_);
  // The oldest first.
  std::list<Wish> wishes_ NACRE_GUARDED_BY(mutex_);
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::fs
