// SPDX-License-Identifier: Apache-2.0
// The attributes that stat shows: reading and changing them, and the times and privileges that
// follow from other changes.
#include <algorithm>
#include <ctime>

#include "fs/volume/inode_attributes.h"
#include "fs/volume/kernel_clock.h"

namespace nacre::fs {

using metadata::InodeRow;

namespace {

constexpr std::uint32_t flags_known = metadata::inode_flag_immutable | metadata::inode_flag_append |
                                      metadata::inode_flag_no_dump | metadata::inode_flag_no_atime;
constexpr std::uint64_t block_size_bytes = 512;  // of st_blocks
constexpr std::int64_t relatime_seconds = 24 * 60 * 60;
// The time between a write and any later change that the kernel sends along with the write's time.
constexpr std::uint64_t late_seconds_max = 10 * 60;

// Whether a program chose the times. The kernel sends the times of a write soon after it, so they
// are then close to the time of the change, which comes along.
bool are_chosen(const AttributeChange& change, const InodeRow& row) {
  if (change.times != AttributeChange::Times::maybe_chosen) {
    return change.times == AttributeChange::Times::chosen;
  }
  if (!change.modified || !change.changed || *change.modified == row.modified) return false;
  const auto [early, late] = std::minmax(change.changed->seconds, change.modified->seconds);
  return static_cast<std::uint64_t>(late) - static_cast<std::uint64_t>(early) > late_seconds_max;
}

}  // namespace

Attributes InodeAttributes::attributes_of(Inode& inode) {
  Attributes attributes{.inode = inode.number()};
  std::shared_ptr<FileData> data;
  std::uint64_t data_bytes = 0, mapped_data_bytes = 0, mapped_size = 0;
  {
    const auto locked = inode.lock();
    const InodeRow& row = locked->row;
    attributes.mode = row.mode;
    attributes.uid = row.uid;
    attributes.gid = row.gid;
    attributes.link_count = row.link_count;
    attributes.flags = row.flags & flags_known;
    attributes.rdev = row.rdev;
    attributes.size = row.size;
    attributes.accessed = row.accessed;
    attributes.modified = row.modified;
    attributes.changed = row.changed;
    attributes.born = row.born;
    data_bytes = mapped_data_bytes = row.data_bytes;
    mapped_size = row.size;
    data = locked->data;
  }
  if (data) {
    attributes.size = data->size();
    mapped_size = data->durable_size();
    mapped_data_bytes = data->durable_data_bytes();
    // Until they are written, bytes that replace others count as the replaced ones do.
    data_bytes = std::min(data->data_bytes(), std::max(attributes.size, mapped_data_bytes));
  }
  attributes.blocks = (data_bytes + block_size_bytes - 1) / block_size_bytes;
  attributes.has_holes =
      inode.is_regular() && (data_bytes < attributes.size || mapped_data_bytes < mapped_size);
  return attributes;
}

Result<Attributes> InodeAttributes::attributes(InodeNumber number) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  return attributes_of(*inode);
}

// Follows relatime: a read is noted if the file changed since the last noted one, otherwise once a
// day.
void InodeAttributes::note_access(Inode& inode) {
  if (rules_.access_times == AccessTimes::never) return;
  if (rules_.read_only || !committer_.health()) return;
  auto locked = inode.lock();
  InodeRow& row = locked->row;
  if (row.flags & metadata::inode_flag_no_atime) return;
  const bool is_noted = row.accessed > row.modified && row.accessed > row.changed &&
                        std::time(nullptr) - row.accessed.seconds < relatime_seconds;
  if (is_noted && rules_.access_times == AccessTimes::relative) return;
  row.accessed = kernel_now();
  mark_dirty(inode, locked);
}

void InodeAttributes::clear_set_id(InodeRow& row, ClearSetId which) {
  if (which == ClearSetId::none || S_ISDIR(row.mode)) return;
  row.mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if (which == ClearSetId::all || (row.mode & S_IXGRP) != 0) {
    row.mode &= ~static_cast<std::uint32_t>(S_ISGID);
  }
}

Result<Attributes> InodeAttributes::change_attributes(InodeNumber number,
                                                      const AttributeChange& change) {
  NACRE_TRY(check_writable());
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  const auto check_flags = [&]() -> Result<> {
    const auto locked = inode->lock();
    const std::uint32_t flags = locked->row.flags;
    if (flags & metadata::inode_flag_immutable) return fail(ErrorCode::not_permitted);
    if ((flags & metadata::inode_flag_append) == 0) return {};
    if (change.mode || change.uid || change.gid || change.size || are_chosen(change, locked->row)) {
      return fail(ErrorCode::not_permitted);
    }
    return {};
  };
  NACRE_TRY(check_flags());
  if (change.size) {
    if (inode->is_directory()) return fail(ErrorCode::is_directory);
    if (!inode->is_regular()) return fail(ErrorCode::invalid_argument);
    if (auto resized = data_of(*inode)->resize(*change.size); !resized) {
      return tl::unexpected(with_path(std::move(resized).error(), number));
    }
  }
  {
    const auto operation = committer_.begin_operation();
    auto locked = inode->lock();
    NACRE_TRY(change_locked(*inode, locked, change));
  }
  return attributes_of(*inode);
}

Result<> InodeAttributes::change_locked(Inode& inode, Inode::Locked& locked,
                                        const AttributeChange& change) {
  InodeRow& row = locked->row;
  const bool new_owner = change.uid || change.gid;
  if (new_owner || change.size) NACRE_TRY(drop_capability(inode, locked));
  if (change.mode) {
    const std::uint32_t mode = inode.type() | (*change.mode & 07777);
    NACRE_TRY(apply_mode_to_acl(inode, locked, mode));
    row.mode = mode;
  } else {
    const auto least = new_owner ? ClearSetId::those_that_lend : ClearSetId::none;
    clear_set_id(row, std::max(least, change.clear_set_id));
  }
  if (change.uid) row.uid = *change.uid;
  if (change.gid) row.gid = *change.gid;
  row.changed = change.changed ? *change.changed : kernel_now();
  if (change.size) row.modified = row.changed;
  if (change.accessed) row.accessed = *change.accessed;
  if (change.modified) row.modified = *change.modified;
  mark_dirty(inode, locked);
  return {};
}

Result<> InodeAttributes::set_flags(InodeNumber number, std::uint32_t flags) {
  NACRE_TRY(check_writable());
  if (flags & ~flags_known) return fail(ErrorCode::unsupported);
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  auto locked = inode->lock();
  flags |= locked->row.flags & ~flags_known;
  if (locked->row.flags == flags) return {};
  locked->row.flags = flags;
  locked->row.changed = kernel_now();
  mark_dirty(*inode, locked);
  return {};
}

}  // namespace nacre::fs
