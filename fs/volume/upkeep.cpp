// SPDX-License-Identifier: Apache-2.0
// What compaction, checkpoints, backups and the scrub need of the volume. An inode whose rows
// compaction changes is in memory only as long as that takes.
#include <future>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "fs/cache/tidy_chunk.h"
#include "fs/volume/volume_impl.h"
#include "metadata/format/scrub_row.h"
#include "metadata/volume_files.h"

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

Result<CheckpointReport> VolumeImpl::write_checkpoint(CheckpointKeep keep) {
  NACRE_TRY(check_writable());
  return checkpointer_.write(keep);
}

Result<> VolumeImpl::note_keyring_generation(std::uint64_t generation) {
  NACRE_TRY(check_writable());
  {
    const auto operation = committer_.begin_operation();
    database_->put(metadata::Table::system, metadata::system_key_keyring,
                   metadata::encode_u64(generation));
  }
  committer_.note_change();
  return committer_.commit(CommitScope{});
}

Result<BackupSnapshot> VolumeImpl::begin_backup() {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  if (++backup_count_ > backup_count_max) {
    --backup_count_;
    return fail(ErrorCode::busy,
                fmt::format("{} backups of this volume are under way already; try again when one "
                            "is done",
                            backup_count_max));
  }
  // On the commit thread, so that no commit comes between segments and database.
  std::promise<Result<BackupSnapshot>> promise;
  committer_.request(CommitScope{.everything = true}, [&](const Result<>& committed) {
    promise.set_value(committed ? hold_committed() : tl::unexpected(committed.error()));
  });
  auto snapshot = promise.get_future().get();
  if (!snapshot) {
    --backup_count_;
    return snapshot;
  }
  // Empty segments that stayed go with the next commit.
  snapshot->hold = std::shared_ptr<const void>(snapshot->hold.get(),
                                               [this, held = snapshot->hold](const void*) mutable {
                                                 held.reset();
                                                 --backup_count_;
                                                 committer_.note_change();
                                                 compactor_.wake();
                                               });
  return snapshot;
}

Result<BackupSnapshot> VolumeImpl::hold_committed() {
  NACRE_ASSIGN(auto database, database_->snapshot());
  store_->close_segments();  // so that what is listed of them never changes again
  NACRE_ASSIGN(auto segments, store_->hold_committed());
  BackupSnapshot snapshot{.files = std::move(segments.files),
                          .current = std::move(database.current)};
  for (const auto& file : database.files) {
    snapshot.files.push_back(
        {.path = fmt::format("{}/{}", metadata::database_folder, file.name), .size = file.size});
  }
  snapshot.hold =
      std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
          std::move(segments.hold), std::move(database.hold));
  return snapshot;
}

Result<> VolumeImpl::save_scrub(std::string row, bool at_once) {
  if (options_.read_only) return {};
  NACRE_TRY(check_writable());
  {
    const auto lock = committer_.begin_operation();
    database_->put(metadata::Table::system, metadata::system_key_scrub, std::move(row));
  }
  committer_.note_change();
  return at_once ? committer_.commit(CommitScope{}) : Result<>();
}

}  // namespace nacre::fs
