// SPDX-License-Identifier: Apache-2.0
// The inodes that the kernel has looked up, that an operation uses, or that changed since the last
// commit. At any time there is one object for each inode number. It is loaded from the table inodes
// on demand, and dropped when its last reference and lookup are gone. Past a bound, inodes that the
// kernel keeps but that were not used for long shrink to their count of lookups. So memory is
// bounded by the inodes in use, and ten bytes for each inode that the kernel keeps (LookupCounts).
//
// If the last name, lookup and reference of an inode are gone, it is not dropped but handed to the
// retire function, which erases it. Thread-safe. The table's own locks are leaves: no other lock is
// taken while one is held.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "fs/cache/file_data.h"
#include "fs/volume/kernel_knowledge.h"
#include "fs/volume/lookup_counts.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

enum class Presence : std::uint8_t { unknown, none, some };

// What an inode's lock guards.
struct InodeState {
  // Size and data_bytes of a regular file count only while data is null.
  metadata::InodeRow row;
  std::shared_ptr<FileData> data;            // of a regular file whose content was asked for
  bool dirty = false;                        // waits to be staged
  bool has_row = false;                      // the table inodes has a row for it
  bool has_orphan_row = false;               // the table orphans has one, too
  bool linkable = false;                     // made without a name; link() may give it one
  bool reaped = false;                       // it is being erased, or that was tried
  metadata::ChunkIndex next_chunk_to_erase;  // of a reaped one: earlier rows are gone
  std::uint64_t staged_group = 0;            // the last group that took its row
  std::uint64_t staged_data_bytes = 0;       // the data bytes that this row has
  Presence xattrs = Presence::unknown;
  Presence capability = Presence::unknown;  // security.capability
  std::uint64_t xattr_change_count = 0;
  // For a directory: counts changes of its entries. Raised under the namespace lock, after the rows
  // change.
  std::uint64_t entries_version = 0;
  // The last known name, for messages.
  InodeNumber name_parent;
  std::string name;
};

class Inode {
 public:
  explicit Inode(InodeNumber number) : number_(number) {}

  InodeNumber number() const { return number_; }
  std::uint32_t type() const { return type_; }  // S_IFREG, S_IFDIR, …: never changes
  bool is_directory() const { return type_ == S_IFDIR; }
  bool is_regular() const { return type_ == S_IFREG; }
  // Whether its rows are erased.
  bool is_gone() const { return gone_.load(std::memory_order_acquire); }
  void set_gone() { gone_.store(true, std::memory_order_release); }

  // The state, and the lock that guards it. No thread locks two inodes at once.
  class Locked {
   public:
    InodeState* operator->() const { return state_; }
    InodeState& operator*() const { return *state_; }

   private:
    friend class Inode;
    Locked(Mutex& mutex, InodeState& state) : lock_(mutex), state_(&state) {}
    UniqueLock<Mutex> lock_;
    InodeState* state_;
  };
  // The object that is returned holds the mutex.
  Locked lock() NACRE_NO_THREAD_SAFETY_ANALYSIS { return Locked(mutex_, state_); }

 private:
  friend class InodeTable;
  friend class InodeRef;
  // For the table, where no other thread refers to the inode or can begin to.
  const InodeState& state_of_unused() const NACRE_NO_THREAD_SAFETY_ANALYSIS { return state_; }

  const InodeNumber number_;
  std::uint32_t type_ = 0;  // set before loaded_
  std::atomic<bool> loaded_{false};
  std::atomic<bool> gone_{false};
  std::atomic<std::uint64_t> pins_{0};  // reaches 0 only under the shard's lock
  // Guarded by the shard's lock.
  std::uint64_t lookups_ = 0;
  bool used_ = false;  // since it was last passed over
  std::list<Inode*>::iterator place_;
  Mutex mutex_;
  InodeState state_ NACRE_GUARDED_BY(mutex_);
};

class InodeTable;

// Keeps an inode in the table. Releasing one takes only the table's locks.
class InodeRef {
 public:
  InodeRef() = default;
  InodeRef(const InodeRef& other);
  InodeRef(InodeRef&& other) noexcept
      : table_(std::exchange(other.table_, nullptr)),
        inode_(std::exchange(other.inode_, nullptr)) {}
  InodeRef& operator=(InodeRef other) noexcept {
    std::swap(table_, other.table_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~InodeRef();

  explicit operator bool() const { return inode_ != nullptr; }
  Inode* operator->() const { return inode_; }
  Inode& operator*() const { return *inode_; }

 private:
  friend class InodeTable;
  InodeRef(InodeTable* table, Inode* inode) : table_(table), inode_(inode) {}  // takes over a pin
  InodeTable* table_ = nullptr;
  Inode* inode_ = nullptr;
};

// Destroyed after all its InodeRefs.
class InodeTable {
 public:
  // retire gets the inodes to erase. It is called on the thread that released them, with the locks
  // that this thread holds. count_max is the number of objects, if those in use allow it.
  InodeTable(const metadata::Database& database, std::function<void(InodeRef)> retire,
             std::size_t count_max);

  // Loads the inode if needed. Error: stale if there is no such inode.
  Result<InodeRef> acquire(InodeNumber number);
  // Does what acquire() does for each number, but reads the rows together. A reference is empty if
  // its inode could not be acquired.
  std::vector<InodeRef> acquire_all(std::span<const InodeNumber> numbers);
  // Returns the inode if it is in memory, otherwise an empty reference.
  InodeRef find(InodeNumber number);
  // Makes a new inode. Its number was never used before.
  InodeRef create(InodeNumber number, InodeState state);

  void add_lookup(const InodeRef& inode);
  // Returns whether lookups are left.
  bool forget(InodeNumber number, std::uint64_t lookups);

  // Puts the inode on the list of inodes to stage. locked is the lock of inode.
  void mark_dirty(Inode& inode, Inode::Locked& locked) NACRE_EXCLUDES(lists_mutex_);
  // Takes the inodes off the list, for this group. An inode that is loaded from now on may have
  // changed in this group, so it is not durable before the group is.
  std::vector<InodeRef> take_dirty(std::uint64_t group) NACRE_EXCLUDES(lists_mutex_);
  // Forgets all lookups, as if the kernel had forgotten all that it knows.
  void forget_all();
  // What the kernel knows. Called once no inode is dropped any more, by no request.
  KernelKnowledge knowledge();
  // Takes over what the kernel knows of an earlier table. Called before anything else.
  void adopt_knowledge(const KernelKnowledge& knowledge);
  // Drops inodes that had to stay only because their data was still being written.
  void drop_lingering() NACRE_EXCLUDES(lists_mutex_);

  // From now on no inode is dropped or retired. Called when the volume closes.
  void keep_everything() { closing_ = true; }

  struct Count {
    std::size_t known = 0;         // known to the kernel or in use
    std::size_t in_memory = 0;     // the part of them that are objects
    std::size_t shrunk_bytes = 0;  // the memory of the others
  };
  Count count() const;

 private:
  friend class InodeRef;
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<InodeNumber, std::unique_ptr<Inode>> inodes NACRE_GUARDED_BY(mutex);
    // The order in which inodes are looked at next.
    std::list<Inode*> order NACRE_GUARDED_BY(mutex);
    LookupCounts shrunk NACRE_GUARDED_BY(mutex);
  };
  // What settle() decided. It is carried out without the lock.
  struct Leaving {
    std::unique_ptr<Inode> dropped;
    InodeRef retired;
  };
  static constexpr std::size_t shard_count = 16;
  Shard& shard_of(InodeNumber number) { return shards_[number.value % shard_count]; }
  InodeRef pin(InodeNumber number);
  Result<> load(Inode& inode);
  // Takes over what the table inodes has for an inode that is not loaded yet. The value was read
  // while the inode was pinned, so no thread can have changed it since then without loading it.
  Result<> adopt(Inode& inode, Inode::Locked& locked,
                 const Result<std::optional<std::string>>& value);
  void release(Inode* inode);
  static bool is_idle(const Inode& inode);
  std::vector<std::unique_ptr<Inode>> shrink(Shard& shard) const NACRE_REQUIRES(shard.mutex);
  static std::unique_ptr<Inode> take_out(Shard& shard, InodeNumber number)
      NACRE_REQUIRES(shard.mutex);
  Leaving settle(Shard& shard, Inode* inode) NACRE_REQUIRES(shard.mutex)
      NACRE_EXCLUDES(lists_mutex_);
  void carry_out(Leaving leaving);

  const metadata::Database& database_;
  std::function<void(InodeRef)> retire_;
  const std::size_t shard_count_max_;  // of objects in a shard
  std::atomic<std::uint64_t> staged_group_{0};
  std::array<Shard, shard_count> shards_;
  std::unordered_set<InodeNumber> linkable_;  // of an earlier table; does not change any more
  std::atomic<bool> closing_{false};
  Mutex lists_mutex_;
  // Numbers, since being on the list must not keep a deleted inode.
  std::vector<InodeNumber> dirty_ NACRE_GUARDED_BY(lists_mutex_);
  std::vector<InodeNumber> lingering_ NACRE_GUARDED_BY(lists_mutex_);
};

}  // namespace nacre::fs
