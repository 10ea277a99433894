// SPDX-License-Identifier: Apache-2.0
#include "fs/volume/volume_impl.h"

#include <fmt/format.h>

namespace nacre::fs {

VolumeImpl::VolumeImpl(const Parts& parts, const NameHashKey& name_hash_key,
                       const Staging::Counters& counters, const VolumeRules& rules,
                       std::size_t loaded_inodes_max)
    : directory_(parts.directory),
      database_(parts.database),
      ballast_(parts.ballast),
      kernel_cache_(parts.kernel_cache),
      committer_(parts.committer),
      cache_(parts.cache),
      admission_(parts.admission),
      rules_(rules),
      names_(database_, name_hash_key),
      xattrs_(database_),
      inodes_(
          database_, [this](InodeRef inode) { reaper_.add(std::move(inode)); }, loaded_inodes_max),
      staging_(database_, inodes_, committer_, counters),
      list_ahead_([this](InodeNumber directory, std::uint64_t from, std::size_t count) {
        read_ahead(directory, from, count);
      }),
      reaper_([this](InodeRef& inode, std::size_t row_count_max) {
        return erase_orphan(inode, row_count_max);
      }) {}

Result<> VolumeImpl::find_root() {
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

}  // namespace nacre::fs
