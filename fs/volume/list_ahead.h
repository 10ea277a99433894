// SPDX-License-Identifier: Apache-2.0
// Large directories are read ahead of who lists them: once a reply is sent, the thread that sent it
// loads the next piece of names and inodes while the kernel takes in the one before (a thread of
// its own would be woken before the reader is, and on his processor). What of a piece did not fit
// into a reply is there for the next one.
//
// What is kept here is never out of date: pieces are read, kept and taken under the namespace lock
// (shared), and whoever changes names, with that lock to himself, drops those of the directory.
// Attributes are no part of a piece: it holds the inodes themselves. An inode in a piece has a name
// in its directory, so none lives on for a piece's sake after its last name is gone.
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
  std::uint64_t from = 0;  // the cookie after which it goes on: of the last entry before next
  std::vector<NameTable::Entry> entries;
  std::vector<InodeRef> inodes;  // of entries, none of a small piece; empty where unreadable
  std::size_t next = 0;          // the first entry that nobody has yet
  bool is_last = false;          // the directory ends with it
};

class ListAhead {
 public:
  // Smaller pieces are not worth it: a reply takes so many, and most directories have no more.
  static constexpr std::size_t entry_count_min = 128;
  static constexpr std::size_t entry_count_max = 1024;
  // Two for each of four readers; the oldest makes way.
  static constexpr std::size_t piece_count_max = 8;

  // Reads a piece and keeps it: takes the namespace lock for both.
  using Read = std::function<void(InodeNumber directory, std::uint64_t from, std::size_t count)>;
  explicit ListAhead(Read read) : read_(std::move(read)) {}

  // Lets go of all inodes; from now on nothing is kept.
  void stop();

  // The piece is wanted soon, unless it is there already.
  void want(InodeNumber directory, std::uint64_t from, std::size_t count);
  // Reads what was wanted first, if anything is. Under no lock.
  void read_wanted();
  // Waits while another thread reads that very piece. Under no lock.
  void wait_for(InodeNumber directory, std::uint64_t from);
  // These three under the namespace lock; drop() alone with it.
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
  std::list<ListPiece> pieces_ NACRE_GUARDED_BY(mutex_);  // the oldest first
  std::list<Wish> wishes_ NACRE_GUARDED_BY(mutex_);       // the same
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::fs
