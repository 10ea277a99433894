// SPDX-License-Identifier: Apache-2.0
// What the next commit takes from the inodes in memory, and what the last one made durable.
//
// Changes of attributes happen in memory (InodeState). stage() puts the rows of changed inodes into
// the open group, once for each inode, no matter how often it changed. Names are in the open group
// from the moment when they change. The data of files that a rename or link moved must go with
// them: "write a new file, rename it over the old one" leaves the old or the new content after a
// crash, never an empty file.
//
// Thread-safe. Its mutex is a leaf.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "fs/cache/file_cache.h"
#include "fs/store/committer.h"
#include "fs/volume/inode_table.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// The database sets aside this many inode numbers beyond those in use. No group can use up more.
inline constexpr std::uint64_t inode_reserve_count = 1u << 24;

class Staging {
 public:
  // The counters that the database's rows have.
  struct Counters {
    std::uint64_t next_inode = 0;
    std::uint64_t inode_count = 0;
    std::uint64_t data_bytes = 0;
  };
  // Files that got a name in this group, each with the number of the move.
  using Moves = std::map<InodeNumber, std::uint64_t>;

  // Everything passed by reference outlives it. The database's row has a number that is
  // inode_reserve_count higher than counters.next_inode.
  Staging(metadata::Database& database, InodeTable& inodes, Committer& committer,
          const Counters& counters);

  // Notes of operations, which hold the operation lock.
  void mark_dirty(Inode& inode, Inode::Locked& locked);  // locked is the inode's lock
  void note_namespace_change();
  void note_move(const Inode& inode) NACRE_EXCLUDES(moves_mutex_);
  // Whether the file got a name in this group.
  bool is_moved(InodeNumber inode) NACRE_EXCLUDES(moves_mutex_);
  Result<InodeNumber> next_inode_number();  // no_space until the next commit
  void add_inode() { ++inode_count_; }
  void remove_inode(const InodeState& state);
  std::uint64_t inode_count() const { return static_cast<std::uint64_t>(inode_count_.load()); }
  std::uint64_t data_bytes() const { return static_cast<std::uint64_t>(data_bytes_.load()); }

  // The calls of a commit, on its thread.
  Moves moves() NACRE_EXCLUDES(moves_mutex_);
  // Notes that the data of the scope was flushed, and that of moves with it. Returns an error that
  // ends the commit.
  Result<> note_flushed(const CommitScope& scope, const Moves& moves, Result<> flushed,
                        FileFailures failures) NACRE_EXCLUDES(moves_mutex_);
  // The files of moves() for which are_unflushed returns true.
  std::set<InodeNumber> moves_that(const std::function<bool(InodeNumber)>& are_unflushed)
      NACRE_EXCLUDES(moves_mutex_);
  // Called under the exclusive operation lock. Returns true if an inode changed.
  bool stage() NACRE_EXCLUDES(moves_mutex_);
  // Notes that the commit made durable what was staged last.
  void note_durable();
  // Why the file's last flush failed; null if it did not.
  const Error* failure_of(InodeNumber inode) const;

  // Whether the inode, its data and all names are durable as they are now.
  bool is_durable(Inode& inode);
  // The error of the last flush of everything, if it failed.
  Result<> file_error() NACRE_EXCLUDES(moves_mutex_);
  // The next stage() is the last one. It gives back the numbers that were set aside.
  void begin_closing() { closing_ = true; }

 private:
  void stage_inode(Inode& inode, std::uint64_t group);
  void stage_counters();

  metadata::Database& database_;
  InodeTable& inodes_;
  Committer& committer_;

  // Numbers from next_inode_ up to inode_limit_ are free. The database's row has the limit, so a
  // crash loses numbers but never gives one out twice. Only stage() changes the limit.
  std::atomic<std::uint64_t> next_inode_;
  std::atomic<std::uint64_t> inode_limit_;
  std::atomic<std::int64_t> inode_count_;
  std::atomic<std::int64_t> data_bytes_;  // as staged
  // The values that the rows have. Only stage() uses these three.
  std::uint64_t staged_inode_count_;
  std::uint64_t staged_data_bytes_;
  std::uint64_t staged_next_inode_;
  std::atomic<bool> closing_{false};

  // Groups in the order in which stage() fills them. durable_group_ may lag behind.
  std::atomic<std::uint64_t> open_group_{1};
  std::atomic<std::uint64_t> durable_group_{0};
  // The last group in which names changed.
  std::atomic<std::uint64_t> namespace_group_{0};

  Mutex moves_mutex_;
  Moves moves_ NACRE_GUARDED_BY(moves_mutex_);
  std::uint64_t move_count_ NACRE_GUARDED_BY(moves_mutex_) = 0;
  Result<> file_error_ NACRE_GUARDED_BY(moves_mutex_) = {};

  // The failures of each file's last flush. Used by the commit thread only.
  FileFailures flush_failures_;
};

}  // namespace nacre::fs
