// SPDX-License-Identifier: Apache-2.0
// New inodes: their numbers, what they inherit from their directory, and their first names.

#include "fs/volume/namespace.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

using metadata::DentryRow;
using metadata::InodeRow;

Result<Namespace::NewInode> Namespace::prepare(Inode& parent, const Caller& caller,
                                               std::uint32_t mode) {
  NewInode made{.row = {.mode = mode, .uid = caller.uid, .gid = caller.gid, .link_count = 1}};
  InodeRow& row = made.row;
  if (!S_ISLNK(mode)) {
    NACRE_ASSIGN(Acl inherited, attributes_.default_acl_of(parent));
    if (inherited.empty()) {
      row.mode &= ~(caller.umask & 0777);
    } else {
      InheritedAcl access = inherit_acl(inherited, mode);
      row.mode = access.mode;
      made.access_acl = std::move(access.access);
      if (S_ISDIR(mode)) made.default_acl = std::move(inherited);
    }
  }
  if (S_ISDIR(mode)) {
    row.link_count = 2;
    row.parent = parent.number();
  }
  const auto locked = parent.lock();
  if (S_ISREG(mode) || S_ISDIR(mode)) row.flags = locked->row.flags & metadata::inode_codec_bits;
  if (locked->row.mode & S_ISGID) {
    row.gid = locked->row.gid;
    if (S_ISDIR(mode)) row.mode |= S_ISGID;
  }
  return made;
}

InodeRef Namespace::create_inode(InodeNumber number, NewInode made) {
  const auto time = kernel_now();
  made.row.accessed = made.row.modified = made.row.changed = made.row.born = time;
  const bool has_acl = !made.access_acl.empty() || !made.default_acl.empty();
  const bool unnamed = made.row.link_count == 0;
  InodeRef inode =
      inodes_.create(number, InodeState{.row = std::move(made.row),
                                        .linkable = unnamed,
                                        .xattrs = has_acl ? Presence::some : Presence::none,
                                        .capability = Presence::none});
  if (!made.access_acl.empty()) {
    xattrs_.put(number, acl_access_name, encode_acl(made.access_acl), /*is_new=*/true);
  }
  if (!made.default_acl.empty()) {
    xattrs_.put(number, acl_default_name, encode_acl(made.default_acl), /*is_new=*/true);
  }
  staging_.add_inode();
  auto locked = inode->lock();
  mark_dirty(*inode, locked);
  return inode;
}

Result<Attributes> Namespace::make(const InodeRef& directory, std::string_view name,
                                   NewInode made) {
  const InodeNumber parent = directory->number();
  InodeRef inode;
  {
    FoundName existing = look_for(*directory, name, false);
    const auto operation = committer_.begin_operation();
    UniqueLock names(namespace_lock_);
    NACRE_TRY(make_current(existing, *directory, name));
    if (existing.row) return fail(ErrorCode::exists);
    NACRE_TRY(check_may_add(*directory));
    const bool is_directory = S_ISDIR(made.row.mode);
    if (is_directory) NACRE_TRY(check_may_get_name(*directory));
    NACRE_ASSIGN(const InodeNumber number, staging_.next_inode_number());
    names_.add(parent, name, DentryRow{number, entry_type(made.row.mode)});
    inode = create_inode(number, std::move(made));
    remember_name(*inode, parent, name);
    change_entries(*directory, +1, is_directory ? +1 : 0, kernel_now());
    staging_.note_namespace_change();
    inodes_.add_lookup(inode);
  }
  return attributes_of(*inode);
}

Result<Attributes> Namespace::make_node(InodeNumber parent, std::string_view name,
                                        const Caller& caller, std::uint32_t mode,
                                        std::uint64_t rdev) {
  NACRE_TRY(check_may_grow());
  NACRE_TRY(check_name(name));
  if ((mode & S_IFMT) == 0) mode |= S_IFREG;
  if (S_ISDIR(mode)) return fail(ErrorCode::not_permitted);
  if (!S_ISREG(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode) && !S_ISCHR(mode) && !S_ISBLK(mode)) {
    return fail(ErrorCode::invalid_argument);
  }
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(parent));
  NACRE_ASSIGN(NewInode made, prepare(*directory, caller, mode & (S_IFMT | 07777)));
  if (S_ISCHR(mode) || S_ISBLK(mode)) made.row.rdev = rdev;
  return make(directory, name, std::move(made));
}

Result<Attributes> Namespace::make_directory(InodeNumber parent, std::string_view name,
                                             const Caller& caller, std::uint32_t mode) {
  NACRE_TRY(check_may_grow());
  NACRE_TRY(check_name(name));
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(parent));
  NACRE_ASSIGN(NewInode made, prepare(*directory, caller, S_IFDIR | (mode & 07777)));
  return make(directory, name, std::move(made));
}

Result<Attributes> Namespace::make_symlink(InodeNumber parent, std::string_view name,
                                           const Caller& caller, std::string_view target) {
  NACRE_TRY(check_may_grow());
  NACRE_TRY(check_name(name));
  if (target.empty()) return fail(ErrorCode::not_found);
  if (target.size() > metadata::symlink_size_bytes_max) return fail(ErrorCode::name_too_long);
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(parent));
  NACRE_ASSIGN(NewInode made, prepare(*directory, caller, S_IFLNK | 0777));
  made.row.symlink_target = target;
  made.row.size = target.size();
  return make(directory, name, std::move(made));
}

Result<Attributes> Namespace::make_unnamed(InodeNumber parent, const Caller& caller,
                                           std::uint32_t mode) {
  NACRE_TRY(check_may_grow());
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(parent));
  NACRE_ASSIGN(NewInode made, prepare(*directory, caller, S_IFREG | (mode & 07777)));
  made.row.link_count = 0;
  InodeRef inode;
  {
    const auto operation = committer_.begin_operation();
    NACRE_TRY(check_may_add(*directory));
    NACRE_ASSIGN(const InodeNumber number, staging_.next_inode_number());
    inode = create_inode(number, std::move(made));
    inodes_.add_lookup(inode);
  }
  return attributes_of(*inode);
}

}  // namespace nacre::fs
