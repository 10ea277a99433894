// SPDX-License-Identifier: Apache-2.0
// Names: which name in which directory means which inode, and the end of inodes that have no name.
// volume.h has the contracts of the calls. Thread-safe. The methods are in names.cpp, create.cpp,
// rename.cpp, directories.cpp and orphans.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fs/volume/acl.h"
#include "fs/volume/directory_offsets.h"
#include "fs/volume/inode_attributes.h"
#include "fs/volume/kernel_clock.h"
#include "fs/volume/list_ahead.h"
#include "fs/volume/namespace_lock.h"
#include "fs/volume/orphan_reaper.h"
#include "fs/volume/volume.h"
#include "fs/volume/volume_core.h"

namespace nacre::fs {

// The DT_* value of a mode.
inline std::uint8_t entry_type(std::uint32_t mode) {
  return static_cast<std::uint8_t>((mode & S_IFMT) >> 12);
}

class Namespace : public VolumePart {
 public:
  Namespace(VolumeCore& core, InodeAttributes& attributes);

  Result<> find_root();     // called before anything else
  Result<> find_orphans();  // retires the orphans of an earlier mount
  OrphanReaper& reaper() { return reaper_; }
  ListAhead& list_ahead() { return list_ahead_; }

  // The calls of the volume.
  Result<Attributes> lookup(InodeNumber parent, std::string_view name);
  Result<Attributes> lookup_inode(InodeNumber inode);
  bool forget(InodeNumber inode, std::uint64_t lookups);
  Result<Attributes> make_node(InodeNumber parent, std::string_view name, const Caller& caller,
                               std::uint32_t mode, std::uint64_t rdev);
  Result<Attributes> make_directory(InodeNumber parent, std::string_view name, const Caller& caller,
                                    std::uint32_t mode);
  Result<Attributes> make_symlink(InodeNumber parent, std::string_view name, const Caller& caller,
                                  std::string_view target);
  Result<Attributes> make_unnamed(InodeNumber parent, const Caller& caller, std::uint32_t mode);
  Result<Attributes> link(InodeNumber inode, InodeNumber parent, std::string_view name);
  Result<> unlink(InodeNumber parent, std::string_view name);
  Result<> remove_directory(InodeNumber parent, std::string_view name);
  Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                  std::string_view new_name, RenameMode mode);
  Result<> rename_over_whiteout(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                                std::string_view new_name, RenameMode mode, const Caller& caller);
  Result<std::string> read_symlink(InodeNumber inode);
  Result<> read_directory(InodeNumber inode, std::uint64_t cookie, bool with_attributes,
                          const std::function<bool(const DirectoryEntry&)>& take);

 private:
  Attributes attributes_of(Inode& inode) { return attributes_.attributes_of(inode); }
  void note_access(Inode& inode) { attributes_.note_access(inode); }
  static Result<> check_name(std::string_view name);
  Result<InodeRef> acquire_directory(InodeNumber number);
  // The inode that a directory's entry names. If it does not exist, the volume is damaged.
  Result<InodeRef> acquire_entry(InodeNumber parent, std::string_view name, InodeNumber number);

  // Defined in directories.cpp:
  Result<std::uint64_t> place_of_offset(InodeNumber directory, std::uint64_t offset);
  Result<std::uint64_t> find_lost_place(InodeNumber directory, std::uint64_t ticket);
  Result<> list_inodes(InodeNumber number, std::uint64_t place, std::uint64_t offset,
                       const std::function<bool(const DirectoryEntry&)>& take);
  Result<ListPiece> read_piece(InodeNumber directory, std::uint64_t from, std::size_t count);
  void keep_rest(ListPiece piece);
  void read_ahead(InodeNumber directory, std::uint64_t from, std::size_t count) noexcept;

  // Defined in names.cpp, create.cpp and rename.cpp:
  struct NewInode {
    metadata::InodeRow row;
    Acl access_acl;
    Acl default_acl;  // of a directory
  };
  Result<NewInode> prepare(Inode& parent, const Caller& caller, std::uint32_t mode);
  Result<Attributes> make(const InodeRef& directory, std::string_view name, NewInode made);
  InodeRef create_inode(InodeNumber number, NewInode made);
  // Check that the directory exists and that it may get a name, or lose one.
  static Result<> check_may_add(Inode& directory);
  static Result<> check_may_remove(Inode& directory);
  // Check that a name of the inode may go or move, and that it may have one more name (a directory:
  // one more subdirectory).
  static Result<> check_may_lose_name(Inode& inode);
  static Result<> check_may_get_name(Inode& inode);
  void change_entries(Inode& directory, std::int64_t entries, std::int64_t subdirectories,
                      const Timestamp& time);
  // Takes one name from the inode (from a directory: its only one).
  void drop_name(Inode& inode, const Timestamp& time);
  void remember_name(Inode& inode, InodeNumber parent, std::string_view name);
  // A name's row, and the inode that it means if with_inode is set. Both are read before the
  // namespace lock is taken, so that no thread waits for the disk under it. They are read again
  // under the lock only if the directory's entries changed in between. Declared before the lock,
  // since inodes are not released under it.
  struct FoundName {
    std::optional<metadata::DentryRow> row;
    InodeRef inode;
    bool with_inode = false;
    bool is_read = false;
    std::uint64_t entries_version = 0;
    InodeRef outdated;
  };
  FoundName look_for(Inode& directory, std::string_view name, bool with_inode);
  Result<> make_current(FoundName& found, Inode& directory, std::string_view name);
  Result<> read_name(FoundName& found, InodeNumber directory, std::string_view name);
  Result<> remove_entry(InodeNumber parent, std::string_view name, bool directory);
  struct Moving;
  Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                  std::string_view new_name, RenameMode mode, const Caller* whiteout_owner);
  Result<> find_moving(Moving& moving, std::string_view name, std::string_view new_name,
                       RenameMode mode);
  Result<> check_move(const Moving& moving, RenameMode mode);
  Result<> check_not_below(InodeNumber directory, InodeNumber ancestor);
  void move(Moving& moving, std::string_view name, std::string_view new_name, RenameMode mode);
  void leave_whiteout(Moving& moving, std::string_view name);
  void set_parent(Inode& inode, InodeNumber parent, std::string_view name, const Timestamp& time);
  // The commit of names waits for the data of files that they move, and all other changes wait with
  // them. So on a full disk a file whose data is not on disk yet keeps its name. Error: no_space.
  Result<> check_data_fits(const Inode& inode);

  // Defined in orphans.cpp:
  bool erase_orphan(InodeRef& inode, std::size_t row_count_max);
  Result<bool> erase_rows(Inode& inode, bool may_have_chunks, std::size_t row_count_max);

  InodeAttributes& attributes_;
  ListAhead list_ahead_;
  DirectoryOffsets directory_offsets_;
  OrphanReaper reaper_;
  InodeRef root_;
  NamespaceLock namespace_lock_;
};

}  // namespace nacre::fs
