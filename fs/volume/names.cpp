// SPDX-License-Identifier: Apache-2.0
// Looks names up, adds links and takes them away. New inodes are in create.cpp, moves in
// rename.cpp.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "fs/volume/namespace.h"

namespace nacre::fs {

using metadata::DentryRow;
using metadata::InodeRow;

namespace {

constexpr std::uint32_t link_count_max = std::numeric_limits<std::int32_t>::max();

}  // namespace

Namespace::Namespace(VolumeCore& core, InodeAttributes& attributes)
    : VolumePart(core),
      attributes_(attributes),
      list_ahead_([this](InodeNumber directory, std::uint64_t from, std::size_t count) {
        read_ahead(directory, from, count);
      }),
      reaper_([this](InodeRef& inode, std::size_t row_count_max) {
        return erase_orphan(inode, row_count_max);
      }) {}

Result<> Namespace::find_root() {
  auto root = inodes_.acquire(metadata::root_inode);
  if (!root || !(*root)->is_directory()) {
    return fail(
        root || root.error().code == ErrorCode::stale ? ErrorCode::corrupt : root.error().code,
        fmt::format("the root directory cannot be read{}{}; run fsck.nacre", root ? "" : ": ",
                    root ? "" : root.error().message));
  }
  root_ = std::move(*root);
  return {};
}

Result<> Namespace::check_name(std::string_view name) {
  if (name.size() > metadata::name_size_bytes_max) return fail(ErrorCode::name_too_long);
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument);
  }
  return {};
}

Result<InodeRef> Namespace::acquire_directory(InodeNumber number) {
  NACRE_ASSIGN(InodeRef inode, inodes_.acquire(number));
  if (!inode->is_directory()) return fail(ErrorCode::not_directory);
  return inode;
}

Result<InodeRef> Namespace::acquire_entry(InodeNumber parent, std::string_view name,
                                          InodeNumber number) {
  auto inode = inodes_.acquire(number);
  if (inode) return inode;
  const std::string where = rules_.may_name_files ? fmt::format("{}/{}", shown_name(parent), name)
                                                  : fmt::format("a name in {}", shown_name(parent));
  if (inode.error().code != ErrorCode::stale) return add_context(inode.error(), where);
  return fail(ErrorCode::missing,
              fmt::format("{}: its inode {} has no row; run fsck.nacre", where, number.value));
}

Result<> Namespace::check_may_add(Inode& directory) {
  const auto locked = directory.lock();
  if (locked->row.link_count == 0) return fail(ErrorCode::not_found);
  if (locked->row.flags & metadata::inode_flag_immutable) return fail(ErrorCode::not_permitted);
  return {};
}

Result<> Namespace::check_may_remove(Inode& directory) {
  const auto locked = directory.lock();
  if (locked->row.flags & (metadata::inode_flag_immutable | metadata::inode_flag_append)) {
    return fail(ErrorCode::not_permitted);
  }
  return {};
}

Result<> Namespace::check_may_get_name(Inode& inode) {
  const auto locked = inode.lock();
  if (locked->row.link_count >= link_count_max) return fail(ErrorCode::too_many_links);
  return {};
}

void Namespace::change_entries(Inode& directory, std::int64_t entries, std::int64_t subdirectories,
                               const Timestamp& time) {
  list_ahead_.drop(directory.number());
  auto locked = directory.lock();
  InodeRow& row = locked->row;
  row.size += static_cast<std::uint64_t>(entries);
  row.link_count += static_cast<std::uint32_t>(subdirectories);
  row.modified = row.changed = time;
  ++locked->entries_version;
  mark_dirty(directory, locked);
}

void Namespace::drop_name(Inode& inode, const Timestamp& time) {
  auto locked = inode.lock();
  locked->row.link_count = inode.is_directory() ? 0 : locked->row.link_count - 1;
  locked->row.changed = time;
  mark_dirty(inode, locked);
}

void Namespace::remember_name(Inode& inode, InodeNumber parent, std::string_view name) {
  const auto locked = inode.lock();
  locked->name_parent = parent;
  if (locked->name != name) locked->name = name;
}

Result<> Namespace::read_name(FoundName& found, InodeNumber directory, std::string_view name) {
  NACRE_ASSIGN(found.row, names_.find(directory, name));
  if (!found.row || !found.with_inode) return {};
  NACRE_ASSIGN(found.inode, acquire_entry(directory, name, found.row->inode));
  return {};
}

// If the read fails, the caller finds out why under the lock.
Namespace::FoundName Namespace::look_for(Inode& directory, std::string_view name, bool with_inode) {
  FoundName found{.with_inode = with_inode};
  found.entries_version = directory.lock()->entries_version;
  found.is_read = read_name(found, directory.number(), name).has_value();
  return found;
}

Result<> Namespace::make_current(FoundName& found, Inode& directory, std::string_view name) {
  if (found.is_read && directory.lock()->entries_version == found.entries_version) return {};
  found.outdated = std::exchange(found.inode, InodeRef());
  return read_name(found, directory.number(), name);
}

Result<Attributes> Namespace::lookup(InodeNumber parent, std::string_view name) {
  // "." works for any inode, for NFS.
  if (name == ".") return lookup_inode(parent);
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(parent));
  InodeRef inode;
  if (name == "..") {
    const InodeNumber above = directory->lock()->row.parent;
    NACRE_ASSIGN(inode, acquire_entry(parent, name, above));
  } else {
    NACRE_TRY(check_name(name));
    FoundName found = look_for(*directory, name, true);
    SharedLock names(namespace_lock_);
    NACRE_TRY(make_current(found, *directory, name));
    if (!found.row) return fail(ErrorCode::not_found);
    inode = std::move(found.inode);
    remember_name(*inode, parent, name);
  }
  inodes_.add_lookup(inode);
  return attributes_of(*inode);
}

Result<Attributes> Namespace::lookup_inode(InodeNumber number) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (inode->lock()->row.link_count == 0) return fail(ErrorCode::stale);
  inodes_.add_lookup(inode);
  return attributes_of(*inode);
}

bool Namespace::forget(InodeNumber inode, std::uint64_t lookups) {
  const bool is_known = inodes_.forget(inode, lookups);
  reaper_.erase_small();
  return is_known;
}

Result<Attributes> Namespace::link(InodeNumber number, InodeNumber parent, std::string_view name) {
  NACRE_TRY(check_may_grow());
  NACRE_TRY(check_name(name));
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(parent));
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (inode->is_directory()) return fail(ErrorCode::not_permitted);
  {
    FoundName existing = look_for(*directory, name, false);
    const auto operation = committer_.begin_move();
    UniqueLock names(namespace_lock_);
    NACRE_TRY(make_current(existing, *directory, name));
    if (existing.row) return fail(ErrorCode::exists);
    NACRE_TRY(check_may_add(*directory));
    NACRE_TRY(check_may_lose_name(*inode));  // the same flags forbid a new name
    NACRE_TRY(check_may_get_name(*inode));
    NACRE_TRY(check_data_fits(*inode));
    const auto time = kernel_now();
    {
      auto locked = inode->lock();
      if (locked->row.link_count == 0 && (!locked->linkable || locked->reaped)) {
        return fail(ErrorCode::not_found);
      }
      ++locked->row.link_count;
      locked->row.changed = time;
      locked->linkable = false;
      mark_dirty(*inode, locked);
    }
    names_.add(parent, name, DentryRow{number, entry_type(inode->type())});
    remember_name(*inode, parent, name);
    change_entries(*directory, +1, 0, time);
    staging_.note_move(*inode);
    staging_.note_namespace_change();
    inodes_.add_lookup(inode);
  }
  return attributes_of(*inode);
}

Result<> Namespace::unlink(InodeNumber parent, std::string_view name) {
  return remove_entry(parent, name, /*directory=*/false);
}

Result<> Namespace::remove_directory(InodeNumber parent, std::string_view name) {
  return remove_entry(parent, name, /*directory=*/true);
}

Result<> Namespace::remove_entry(InodeNumber parent, std::string_view name, bool directory) {
  NACRE_TRY(check_writable());
  NACRE_TRY(check_name(name));
  {
    NACRE_ASSIGN(const InodeRef holder, acquire_directory(parent));
    FoundName found = look_for(*holder, name, true);
    const auto operation = committer_.begin_operation();
    UniqueLock names(namespace_lock_);
    NACRE_TRY(make_current(found, *holder, name));
    if (!found.row) return fail(ErrorCode::not_found);
    const InodeRef& inode = found.inode;
    if (directory && !inode->is_directory()) return fail(ErrorCode::not_directory);
    if (!directory && inode->is_directory()) return fail(ErrorCode::is_directory);
    NACRE_TRY(check_may_remove(*holder));
    NACRE_TRY(check_may_lose_name(*inode));
    if (directory) {
      NACRE_ASSIGN(const bool empty, names_.is_empty(inode->number()));
      if (!empty) return fail(ErrorCode::not_empty);
    }
    const auto time = kernel_now();
    names_.remove(parent, name);
    drop_name(*inode, time);
    change_entries(*holder, -1, directory ? -1 : 0, time);
    staging_.note_namespace_change();
  }
  reaper_.erase_small();
  return {};
}

Result<> Namespace::check_may_lose_name(Inode& inode) {
  const auto locked = inode.lock();
  if (locked->row.flags & (metadata::inode_flag_immutable | metadata::inode_flag_append)) {
    return fail(ErrorCode::not_permitted);
  }
  return {};
}

Result<std::string> Namespace::read_symlink(InodeNumber number) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (inode->type() != S_IFLNK) return fail(ErrorCode::invalid_argument);
  note_access(*inode);
  return inode->lock()->row.symlink_target;
}

}  // namespace nacre::fs
