// SPDX-License-Identifier: Apache-2.0
// What compaction, checkpoints, backups and the scrub need of the volume. An inode whose rows
// compaction changes is in memory only as long as that takes.
#include <algorithm>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/cache/tidy_chunk.h"
#include "fs/volume/volume_impl.h"
#include "metadata/format/scrub_row.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

namespace {

// For less than this no backup is given up, and nobody waits.
constexpr std::uint64_t held_bytes_min = 1u << 20;
// How long a change waits at most for what is dead and not free yet, and how often it looks.
constexpr std::chrono::milliseconds freeing_wait{5000};
constexpr std::chrono::milliseconds freeing_pause{20};

}  // namespace

Result<std::size_t> VolumeImpl::change_rows(InodeNumber number,
                                            std::span<const RowChange> changes) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (!inode->is_regular()) return fail(ErrorCode::corrupt, "records of no regular file");
  return data_of(*inode)->change_rows(changes);
}

bool VolumeImpl::is_going(InodeNumber number) {
  const auto inode = inodes_.acquire(number);
  return inode ? (*inode)->lock()->reaped : inode.error().code == ErrorCode::stale;
}

Result<> VolumeImpl::tidy_chunk(InodeNumber number, ChunkIndex index) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (!inode->is_regular()) return fail(ErrorCode::corrupt, "a chunk of no regular file");
  NACRE_ASSIGN(const bool changed, fs::tidy_chunk(cache_, *data_of(*inode), index));
  // No inode changes with it. But its row names other records by now, and those that a checkpoint
  // names for it are dead.
  if (changed) checkpointer_.note_change();
  return {};
}

std::uint64_t VolumeImpl::inlined_bytes() const {
  return cache_.inlined_bytes();
}

PatchedChunks VolumeImpl::take_patched_chunks() {
  return cache_.take_patched();
}

Result<CompactionReport> VolumeImpl::compact(CompactionGoal goal,
                                             const CompactionProgress& progress) {
  NACRE_TRY(check_writable());
  return compactor_.run(goal, progress);
}

bool VolumeImpl::may_write_on(std::uint64_t written_bytes) {
  return compactor_.may_go_on(written_bytes);
}

void VolumeImpl::hold_writer(InodeNumber inode, std::uint64_t written_bytes,
                             std::function<void()> go_on) noexcept {
  compactor_.hold_writer(inode, written_bytes, std::move(go_on));
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
  NACRE_TRY(backups_.enter());
  // On the commit thread, so that no commit comes between segments and database.
  std::promise<Result<BackupSnapshot>> promise;
  committer_.request(CommitScope{.everything = true}, [&](const Result<>& committed) {
    promise.set_value(committed ? hold_committed() : tl::unexpected(committed.error()));
  });
  auto snapshot = promise.get_future().get();
  if (!snapshot) backups_.leave();
  return snapshot;
}

// Empty segments that stayed go with the next commit.
void VolumeImpl::note_backup_gone() {
  committer_.note_change();
  compactor_.wake();
}

bool VolumeImpl::give_up_backups(std::uint64_t bytes_min) {
  if (backups_.count() == 0) return false;
  const std::uint64_t held_bytes = store_->stats().held_bytes + database_->stats().held_bytes;
  if (held_bytes < std::max(bytes_min, held_bytes_min) || !backups_.give_up()) return false;
  spdlog::warn(
      "{}: the disk is full: {} bytes that were deleted, and are there only because a backup "
      "copies "
      "them, go now; the backup fails, run it again once there is more room",
      directory_->description(), held_bytes);
  freeing_until_ = std::chrono::steady_clock::now() + freeing_wait;
  committer_.request(CommitScope{.everything = true}, [](const Result<>&) {});
  return true;
}

void VolumeImpl::expect_room(std::uint64_t bytes_min) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_freeing_.load()) return;
  // What is being erased is not known to be dead yet.
  const std::uint64_t wanted_bytes = std::max(bytes_min, held_bytes_min);
  if (!reaper_.is_busy() && store_->stats().reclaimable_bytes < wanted_bytes) return;
  next_freeing_ = now + 2 * freeing_wait;
  freeing_until_ = now + freeing_wait;
  committer_.request(CommitScope{.everything = true}, [](const Result<>&) {});
  compactor_.wake();
}

Result<> VolumeImpl::admit_after_freeing(const std::function<Result<>()>& admit,
                                         std::uint64_t missing_bytes) {
  auto admitted = admit();
  if (admitted) return admitted;
  if (!give_up_backups(missing_bytes)) expect_room(missing_bytes);
  // Whole segments go with a commit; what lies between live records, with compaction.
  while (!admitted && std::chrono::steady_clock::now() < freeing_until_.load()) {
    std::this_thread::sleep_for(freeing_pause);
    admitted = admit();
    if (admitted) next_freeing_ = std::chrono::steady_clock::time_point{};
  }
  return admitted;
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
  snapshot.hold = backups_.add(
      std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
          std::move(segments.hold), std::move(database.hold)));
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
