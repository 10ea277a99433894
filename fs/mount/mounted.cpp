// SPDX-License-Identifier: Apache-2.0
// What a commit and compaction ask of the volume, and operations on the volume as a whole.
#include "fs/mount/mounted.h"

#include <future>
#include <utility>

#include <fmt/format.h>

#include "fs/cache/tidy_chunk.h"
#include "fs/volume/volume_impl.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

Volume& Mounted::volume() {
  return *volume_;
}

void Mounted::durable_state_changed(InodeNumber number) {
  // A dirty inode is not dropped from memory before its row has the new size.
  const InodeRef inode = volume_->inodes().find(number);
  if (!inode) return;
  auto locked = inode->lock();
  volume_->staging().mark_dirty(*inode, locked);
}

Result<> Mounted::flush(const CommitScope& scope) {
  volume_->inodes().drop_lingering();
  volume_->names().reaper().erase_small();
  const Staging::Moves moves = volume_->staging().moves();
  CommitScope wider = scope;
  for (const auto& [inode, when] : moves) {
    // If a file that is still open is renamed during many renames, the pages that the kernel holds
    // of it come with a later commit.
    if (kernel_cache_.is_set() && !scope.moves_held) {
      compactor_.pacer().exempt(inode);  // this thread waits for the answers to these writes
      kernel_cache_.write_out(inode);
      compactor_.pacer().exempt(std::nullopt);
    }
    wider.inodes.insert(inode);
  }
  FileFailures failures;
  auto flushed = cache_.flush(wider, options_.inline_commit_bytes_max, failures);
  return volume_->staging().note_flushed(wider, moves, std::move(flushed), std::move(failures));
}

std::set<InodeNumber> Mounted::unflushed_moves() {
  return volume_->staging().moves_that(
      [this](InodeNumber inode) { return kernel_cache_.is_set() || cache_.is_dirty(inode); });
}

Result<> Mounted::stage() {
  if (volume_->staging().stage()) checkpointer_.note_change();
  compactor_.wake();
  return {};
}

Result<std::size_t> Mounted::change_rows(InodeNumber number, std::span<const RowChange> changes) {
  NACRE_ASSIGN(const InodeRef inode, volume_->inodes().acquire(number));
  if (!inode->is_regular()) return fail(ErrorCode::corrupt, "records of no regular file");
  return volume_->files().data_of(*inode)->change_rows(changes);
}

bool Mounted::is_going(InodeNumber number) {
  const auto inode = volume_->inodes().acquire(number);
  return inode ? (*inode)->lock()->reaped : inode.error().code == ErrorCode::stale;
}

Result<> Mounted::tidy_chunk(InodeNumber number, ChunkIndex index) {
  NACRE_ASSIGN(const InodeRef inode, volume_->inodes().acquire(number));
  if (!inode->is_regular()) return fail(ErrorCode::corrupt, "a chunk of no regular file");
  NACRE_ASSIGN(const bool changed,
               fs::tidy_chunk(cache_, *volume_->files().data_of(*inode), index));
  // No inode changes. But the row names other records now, so a checkpoint that names the old ones
  // is out of date.
  if (changed) checkpointer_.note_change();
  return {};
}

Result<CompactionReport> Mounted::compact(CompactionGoal goal, const CompactionProgress& progress) {
  NACRE_TRY(check_writable());
  return compactor_.run(goal, progress);
}

Result<CheckpointReport> Mounted::write_checkpoint(CheckpointKeep keep) {
  NACRE_TRY(check_writable());
  return checkpointer_.write(keep);
}

Result<> Mounted::note_keyring_generation(std::uint64_t generation) {
  return put_system_row(metadata::system_key_keyring, metadata::encode_u64(generation),
                        /*at_once=*/true);
}

Result<> Mounted::note_superblock_generation(std::uint64_t generation) {
  if (generation == 0) return {};
  return put_system_row(metadata::system_key_superblock, metadata::encode_u64(generation),
                        /*at_once=*/true);
}

Result<> Mounted::put_system_row(std::string_view key, std::string row, bool at_once) {
  NACRE_TRY(check_writable());
  {
    const auto operation = committer_.begin_operation();
    database_->put(metadata::Table::system, key, std::move(row));
  }
  committer_.note_change();
  return at_once ? committer_.commit(CommitScope{}) : Result<>();
}

Result<BackupSnapshot> Mounted::begin_backup() {
  if (options_.read_only) return fail(ErrorCode::read_only, "the volume is mounted read-only");
  NACRE_TRY(backups_.enter());
  // This runs on the commit thread, so that no commit comes between segments and database.
  std::promise<Result<BackupSnapshot>> promise;
  committer_.request(CommitScope{.everything = true}, [&](const Result<>& committed) {
    promise.set_value(committed ? hold_committed() : tl::unexpected(committed.error()));
  });
  auto snapshot = promise.get_future().get();
  if (!snapshot) backups_.leave();
  return snapshot;
}

Result<BackupSnapshot> Mounted::hold_committed() {
  NACRE_ASSIGN(auto database, database_->snapshot());
  store_->close_segments();  // so that listed segments never change again
  NACRE_ASSIGN(auto segments, store_->hold_committed());
  BackupSnapshot snapshot{.files = std::move(segments.files),
                          .current = std::move(database.current)};
  for (const auto& file : database.files) {
    snapshot.files.push_back(
        {.path = fmt::format("{}/{}", metadata::database_folder, file.name), .size = file.size});
  }
  snapshot.hold = backups_.add(
      std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
          std::move(segments.hold), std::move(database.hold)));
  return snapshot;
}

metadata::VolumeAge Mounted::age() const {
  // The row of a session is durable before the session begins, and its changes are counted from
  // there.
  const auto session = store_->session_name();
  return {.session_count = session.ordinal,
          .session = session.salt,
          .change_count = database_->durable_change_count()};
}

VolumeStats Mounted::stats() const {
  const auto cache = cache_.stats();
  const auto inodes = volume_->inodes().count();
  const auto health = committer_.health();
  return VolumeStats{.inode_count = volume_->staging().inode_count(),
                     .data_bytes = volume_->staging().data_bytes(),
                     .dirty_bytes = cache.dirty_bytes,
                     .cached_bytes = cache.chunks.bytes,
                     .cache_hits = cache.chunks.hits,
                     .cache_misses = cache.chunks.misses,
                     .known_inodes = inodes.known,
                     .loaded_inodes = inodes.in_memory,
                     .segments = store_->stats(),
                     .compaction = compactor_.stats(),
                     .checkpoints = checkpointer_.stats(),
                     .commits = committer_.stats(),
                     .database = database_->stats(),
                     .engine = engine_->stats(),
                     .engine_backend = engine_->backend_name(),
                     .backup_count = backups_.count(),
                     .health = health ? "ok" : health.error().message};
}

}  // namespace nacre::fs
