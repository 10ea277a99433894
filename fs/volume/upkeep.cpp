// SPDX-License-Identifier: Apache-2.0
// What compaction needs of the volume: the files whose rows it changes. An inode that it asks for
// is in memory only as long as that takes.
#include "fs/cache/tidy_chunk.h"
#include "fs/volume/volume_impl.h"

namespace nacre::fs {

Result<std::size_t> VolumeImpl::change_rows(InodeNumber number,
                                            std::span<const RowChange> changes) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (!inode->is_regular()) return fail(ErrorCode::corrupt, "records of no regular file");
  return data_of(*inode)->change_rows(changes);
}

Result<> VolumeImpl::tidy_chunk(InodeNumber number, ChunkIndex index) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (!inode->is_regular()) return fail(ErrorCode::corrupt, "a chunk of no regular file");
  return fs::tidy_chunk(cache_, *data_of(*inode), index);
}

std::uint64_t VolumeImpl::inlined_bytes() const {
  return cache_.inlined_bytes();
}

std::vector<std::pair<InodeNumber, ChunkIndex>> VolumeImpl::take_patched_chunks() {
  return cache_.take_patched();
}

Result<CompactionReport> VolumeImpl::compact(CompactionGoal goal,
                                             const CompactionProgress& progress) {
  NACRE_TRY(check_writable());
  return compactor_.run(goal, progress);
}

void VolumeImpl::stop_compaction() {
  compactor_.stop();
}

}  // namespace nacre::fs
