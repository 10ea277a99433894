// SPDX-License-Identifier: Apache-2.0
// Renames: replacing and exchanging files, moving directories, leaving whiteouts.
#include <dirent.h>

#include "fs/volume/namespace.h"

namespace nacre::fs {

using metadata::DentryRow;

namespace {

// No path can be made deeper. A longer walk upwards goes in a circle.
constexpr std::size_t directory_depth_max = 1u << 20;

}  // namespace

// Both ends of a rename. The inode that new_name has meant so far is exchanged with that of name,
// or removed.
struct Namespace::Moving {
  InodeRef from, to;  // the directories
  FoundName source;
  FoundName target;  // new_name may mean nothing yet
  // What the old name means afterwards, if anything.
  InodeNumber whiteout_number;
  std::optional<NewInode> whiteout;
};

Result<> Namespace::rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                           std::string_view new_name, RenameMode mode) {
  return rename(parent, name, new_parent, new_name, mode, nullptr);
}

Result<> Namespace::rename_over_whiteout(InodeNumber parent, std::string_view name,
                                         InodeNumber new_parent, std::string_view new_name,
                                         RenameMode mode, const Caller& caller) {
  if (mode == RenameMode::exchange) return fail(ErrorCode::invalid_argument);
  return rename(parent, name, new_parent, new_name, mode, &caller);
}

Result<> Namespace::rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                           std::string_view new_name, RenameMode mode,
                           const Caller* whiteout_owner) {
  NACRE_TRY(whiteout_owner != nullptr ? check_may_grow() : check_writable());
  NACRE_TRY(check_name(name));
  NACRE_TRY(check_name(new_name));
  {
    Moving moving;
    NACRE_ASSIGN(moving.from, acquire_directory(parent));
    NACRE_ASSIGN(moving.to, acquire_directory(new_parent));
    moving.source = look_for(*moving.from, name, true);
    moving.target = look_for(*moving.to, new_name, mode != RenameMode::no_replace);
    if (whiteout_owner != nullptr) {
      NACRE_ASSIGN(moving.whiteout, prepare(*moving.from, *whiteout_owner, S_IFCHR));
    }
    const auto operation = committer_.begin_move();
    UniqueLock names(namespace_lock_);
    NACRE_TRY(find_moving(moving, name, new_name, mode));
    // For two names of one file, POSIX demands that nothing happens.
    if (moving.target.inode && moving.target.inode->number() == moving.source.inode->number())
      return {};
    NACRE_TRY(check_move(moving, mode));
    if (moving.whiteout) {
      NACRE_ASSIGN(moving.whiteout_number, staging_.next_inode_number());
    }
    move(moving, name, new_name, mode);
  }
  reaper_.erase_small();
  return {};
}

Result<> Namespace::find_moving(Moving& moving, std::string_view name, std::string_view new_name,
                                RenameMode mode) {
  NACRE_TRY(make_current(moving.source, *moving.from, name));
  if (!moving.source.row) return fail(ErrorCode::not_found);
  NACRE_TRY(make_current(moving.target, *moving.to, new_name));
  if (moving.target.row && mode == RenameMode::no_replace) return fail(ErrorCode::exists);
  if (!moving.target.row && mode == RenameMode::exchange) return fail(ErrorCode::not_found);
  return {};
}

Result<> Namespace::check_move(const Moving& moving, RenameMode mode) {
  Inode& inode = *moving.source.inode;
  const bool exchange = mode == RenameMode::exchange;
  const bool same_parent = moving.from->number() == moving.to->number();
  // No directory may move below itself.
  if (!same_parent && inode.is_directory()) {
    NACRE_TRY(check_not_below(moving.to->number(), inode.number()));
  }
  if (!same_parent && exchange && moving.target.inode->is_directory()) {
    NACRE_TRY(check_not_below(moving.from->number(), moving.target.inode->number()));
  }
  NACRE_TRY(check_may_remove(*moving.from));
  NACRE_TRY(check_may_lose_name(inode));
  NACRE_TRY(check_data_fits(inode));
  if (exchange) NACRE_TRY(check_data_fits(*moving.target.inode));
  NACRE_TRY(check_may_add(*moving.to));
  if (moving.target.inode) {
    NACRE_TRY(check_may_remove(*moving.to));
    NACRE_TRY(check_may_lose_name(*moving.target.inode));
  }
  const bool replaces_directory = moving.target.inode && moving.target.inode->is_directory();
  if (moving.target.inode && !exchange) {
    if (inode.is_directory() && !replaces_directory) return fail(ErrorCode::not_directory);
    if (!inode.is_directory() && replaces_directory) return fail(ErrorCode::is_directory);
    if (replaces_directory) {
      NACRE_ASSIGN(const bool empty, names_.is_empty(moving.target.inode->number()));
      if (!empty) return fail(ErrorCode::not_empty);
    }
  }
  if (!same_parent && inode.is_directory() && !replaces_directory) {
    NACRE_TRY(check_may_get_name(*moving.to));
  }
  if (!same_parent && exchange && replaces_directory && !inode.is_directory()) {
    NACRE_TRY(check_may_get_name(*moving.from));
  }
  return {};
}

Result<> Namespace::check_not_below(InodeNumber directory, InodeNumber ancestor) {
  for (std::size_t depth = 0; depth < directory_depth_max; ++depth) {
    if (directory == ancestor) return fail(ErrorCode::invalid_argument);
    if (directory == metadata::root_inode) return {};
    NACRE_ASSIGN(const InodeRef inode, acquire_entry(directory, ".", directory));
    directory = inode->lock()->row.parent;
  }
  return fail(ErrorCode::corrupt, "a directory lies below itself; run fsck.nacre");
}

void Namespace::move(Moving& moving, std::string_view name, std::string_view new_name,
                     RenameMode mode) {
  const auto time = kernel_now();
  const InodeNumber parent = moving.from->number();
  const InodeNumber new_parent = moving.to->number();
  const std::int64_t leaving = moving.source.inode->is_directory() ? 1 : 0;
  const std::int64_t replaced = moving.target.inode && moving.target.inode->is_directory() ? 1 : 0;
  if (mode == RenameMode::exchange) {
    names_.replace(parent, name, *moving.target.row);
    names_.replace(new_parent, new_name, *moving.source.row);
    set_parent(*moving.target.inode, parent, name, time);
    staging_.note_move(*moving.target.inode);
    change_entries(*moving.from, 0, replaced - leaving, time);
    change_entries(*moving.to, 0, leaving - replaced, time);
  } else {
    if (moving.whiteout) {
      leave_whiteout(moving, name);
    } else {
      names_.remove(parent, name);
    }
    if (moving.target.inode) {
      names_.replace(new_parent, new_name, *moving.source.row);
      drop_name(*moving.target.inode, time);
    } else {
      names_.add(new_parent, new_name, *moving.source.row);
    }
    change_entries(*moving.from, moving.whiteout ? 0 : -1, -leaving, time);
    change_entries(*moving.to, moving.target.inode ? 0 : +1, leaving - replaced, time);
  }
  set_parent(*moving.source.inode, new_parent, new_name, time);
  staging_.note_move(*moving.source.inode);
  staging_.note_namespace_change();
}

void Namespace::leave_whiteout(Moving& moving, std::string_view name) {
  const InodeNumber parent = moving.from->number();
  names_.replace(parent, name, DentryRow{moving.whiteout_number, DT_CHR});
  const InodeRef inode = create_inode(moving.whiteout_number, std::move(*moving.whiteout));
  remember_name(*inode, parent, name);
}

void Namespace::set_parent(Inode& inode, InodeNumber parent, std::string_view name,
                           const Timestamp& time) {
  auto locked = inode.lock();
  if (inode.is_directory()) locked->row.parent = parent;
  locked->row.changed = time;
  locked->name_parent = parent;
  locked->name = name;
  mark_dirty(inode, locked);
}

Result<> Namespace::check_data_fits(const Inode& inode) {
  if (!inode.is_regular() || !cache_.is_dirty(inode.number())) return {};
  if (ballast_.admit_name_of_dirty_file([this] { return cache_.flush_room_bytes(); })) return {};
  return fail(ErrorCode::no_space, "the disk is full, and the file's data is not on it yet");
}

}  // namespace nacre::fs
