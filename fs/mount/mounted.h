// SPDX-License-Identifier: Apache-2.0
// An open volume: makes, owns, starts, stops and closes the parts that work below the file system's
// calls. Scrub, rotation, backups and the control socket get the parts that they use from here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "fs/cache/file_cache.h"
#include "fs/checkpoint/checkpointer.h"
#include "fs/space/compactor.h"
#include "fs/store/backup_holds.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"
#include "fs/store/segment_store.h"
#include "fs/volume/admission.h"
#include "fs/volume/kernel_cache.h"
#include "fs/volume/kernel_knowledge.h"
#include "fs/volume/volume.h"
#include "fs/volume/volume_rules.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/tables/database.h"
#include "metadata/tables/volume_age.h"

namespace nacre::fs {

class VolumeImpl;

struct VolumeOptions {
  bool read_only = false;
  bool may_name_files = true;  // in errors and messages; if not, these give inode numbers
  AccessTimes access_times = AccessTimes::relative;
  std::uint32_t commit_interval_ms = 5000;
  // Empty: 64 to 256 MiB, depending on the number of cores, or 256 MiB if the engine prefers long
  // payloads.
  std::optional<std::uint64_t> dirty_budget_bytes;
  std::uint64_t flush_size_bytes_max = 8u << 20;  // as in FileCacheOptions
  std::uint64_t cache_budget_bytes = 256u << 20;
  // The number of whole inodes to keep in memory. If more inodes are in use, more are kept. The
  // kernel may know any number of inodes.
  std::uint64_t loaded_inodes_max = 64u << 10;
  // A commit with at most this much file data carries the data in its WriteBatch.
  std::uint32_t inline_commit_bytes_max = 128u << 10;
  std::uint64_t read_ahead_bytes_max = 8u << 20;
  CompactorOptions compaction;
  bool background_compaction = true;
  CheckpointOptions checkpoints;
  SegmentStoreOptions store;  // codec, level, padding, chunk size: from the superblock
  // The superblock's metadata::generation_to_note(). If the database has noted a higher one, open()
  // fails with rolled_back. An opening for writing notes this one. 0: nothing is compared or noted.
  std::uint64_t superblock_generation = 0;
  // Called with the opened database, which may have recovered itself, and before anything else is
  // changed. An error ends the opening.
  std::function<Result<>(const metadata::Database&)> accept = nullptr;
  // What the kernel knows of the volume already, as close() gave it. Used during the opening only.
  const KernelKnowledge* knowledge = nullptr;
};

struct VolumeStats {
  std::uint64_t inode_count = 0;
  std::uint64_t data_bytes = 0;  // plain bytes of all files
  std::uint64_t dirty_bytes = 0;
  std::uint64_t cached_bytes = 0;
  std::uint64_t cache_hits = 0, cache_misses = 0;
  std::uint64_t known_inodes = 0;   // inodes that the kernel knows or that are in use
  std::uint64_t loaded_inodes = 0;  // those of known_inodes that are wholly in memory
  SegmentStats segments;
  CompactorStats compaction;
  CheckpointStats checkpoints;
  CommitterStats commits;
  metadata::DatabaseStats database;
  engine::EngineStats engine;
  std::string engine_backend;
  unsigned backup_count = 0;  // backups that are under way
  std::string health;         // "ok", or why the volume refuses changes
};

// Thread-safe.
class Mounted final : private CommitSource, private DurableObserver, private RowKeeper {
 public:
  // Makes an empty root directory and the first rows in a new database. mkfs calls it.
  // superblock_generation is as in VolumeOptions; padding is the volume's.
  static Result<> format(std::shared_ptr<metadata::BackingDirectory> directory,
                         std::shared_ptr<const metadata::KeyTree> keys,
                         std::uint64_t keyring_generation, const Caller& owner,
                         std::uint64_t superblock_generation = 0,
                         engine::Padding padding = engine::Padding::none);

  // Opens the database and the store, recovers, removes orphans, and starts the committer. Errors:
  // those of Database::open(), SegmentStore::open() and accept; rolled_back if the keyring or the
  // superblock is older than noted.
  static Result<std::unique_ptr<Mounted>> open(
      std::shared_ptr<metadata::BackingDirectory> directory,
      std::shared_ptr<const metadata::KeyTree> keys, std::uint64_t keyring_generation,
      std::unique_ptr<engine::Engine> engine, const VolumeOptions& options);
  // The same with a database that the caller has opened in that directory. It is opened read-only
  // exactly if options.read_only is set. So a test can put a layer between database and volume.
  static Result<std::unique_ptr<Mounted>> open_over(
      std::shared_ptr<metadata::BackingDirectory> directory,
      std::unique_ptr<metadata::Database> database, std::shared_ptr<const metadata::KeyTree> keys,
      std::uint64_t keyring_generation, std::unique_ptr<engine::Engine> engine,
      const VolumeOptions& options);
  // Without close() before it, the volume is left as after a crash.
  ~Mounted() override;
  // Commits everything and leaves the volume clean. No other thread may use the parts any more. If
  // knowledge is given, the volume will be opened again behind the same mount: files without a name
  // that the kernel knows are kept.
  Result<> close(KernelKnowledge* knowledge = nullptr);

  Volume& volume();

  // Rewrites segments until the goal is reached, and commits, on the calling thread. Errors:
  // cancelled if the compactor is stopped; read_only.
  Result<CompactionReport> compact(CompactionGoal goal, const CompactionProgress& progress);
  // Commits everything, and keeps all files that this commit names until the snapshot's hold is
  // destroyed. Until then deletions free no space of these files. Nothing else is held up. Data
  // that a full disk refused is not part of the snapshot. Errors: busy if backup_count_max backups
  // are under way; read_only for a volume that is opened read-only, which needs no snapshot.
  Result<BackupSnapshot> begin_backup();
  // Commits everything, writes a checkpoint of that state under the current epoch in segments of
  // its own, and commits again. With only_this no record of an earlier checkpoint is left. It takes
  // as long as reading all rows; other operations do not wait for it. Errors: cancelled by close();
  // no_space; too_big; read_only.
  Result<CheckpointReport> write_checkpoint(CheckpointKeep keep);
  // Makes later mounts refuse an older keyring; durable when it returns. The keyring of that
  // generation must be durable already. KeyringKeeper calls it. Error: read_only.
  Result<> note_keyring_generation(std::uint64_t generation);
  // Makes later mounts refuse an older superblock. generation is its
  // metadata::generation_to_note(); 0 does nothing.
  Result<> note_superblock_generation(std::uint64_t generation);
  // Puts a row of the table system. With at_once it is durable when this returns, otherwise with
  // the next commit. Error: read_only.
  Result<> put_system_row(std::string_view key, std::string row, bool at_once);
  // Error: read_only if the volume was opened read-only, or has stopped taking changes after an
  // error.
  Result<> check_writable() const { return admission_.check_writable(); }

  VolumeStats stats() const;
  // How far the durable state has come. For a volume that is open for writing; also after close().
  metadata::VolumeAge age() const;

  // The parts. Each is thread-safe and lives as long as the volume.
  bool is_read_only() const { return options_.read_only; }
  bool may_name_files() const { return options_.may_name_files; }
  metadata::BackingDirectory& directory() { return *directory_; }
  engine::Engine& engine() { return *engine_; }
  metadata::Database& database() { return *database_; }
  SegmentStore& store() { return *store_; }
  KernelCacheLink& kernel_cache() { return kernel_cache_; }
  Committer& committer() { return committer_; }
  Compactor& compactor() { return compactor_; }
  const BackupHolds& backups() const { return backups_; }

 private:
  // Rows that are read before anything else can be opened.
  struct SystemRows;
  Mounted(std::shared_ptr<metadata::BackingDirectory> directory,
          std::unique_ptr<engine::Engine> engine, std::unique_ptr<metadata::Database> database,
          std::unique_ptr<SegmentStore> store, const SystemRows& rows,
          const VolumeOptions& options);
  static Result<SystemRows> read_system_rows(const metadata::Database& database);
  Result<> start();
  Result<BackupSnapshot> hold_committed();  // called on the commit thread

  // CommitSource.
  Result<> flush(const CommitScope& scope) override;
  Result<> stage() override;
  std::set<InodeNumber> unflushed_moves() override;
  std::uint64_t flushed_bytes() const override { return cache_.flushed_bytes(); }
  // DurableObserver.
  void durable_state_changed(InodeNumber inode) override;
  // RowKeeper. If a file is not in memory, its inode is loaded for the change only.
  Result<std::size_t> change_rows(InodeNumber inode, std::span<const RowChange> changes) override;
  bool is_going(InodeNumber inode) override;
  Result<> tidy_chunk(InodeNumber inode, ChunkIndex index) override;
  std::uint64_t inlined_bytes() const override { return cache_.inlined_bytes(); }
  PatchedChunks take_patched_chunks() override { return cache_.take_patched(); }

  const std::shared_ptr<metadata::BackingDirectory> directory_;
  const VolumeOptions options_;
  const std::unique_ptr<engine::Engine> engine_;
  const std::unique_ptr<metadata::Database> database_;
  const std::unique_ptr<SegmentStore> store_;
  Ballast ballast_;
  KernelCacheLink kernel_cache_;
  Committer committer_;
  FileCache cache_;
  Compactor compactor_;
  Checkpointer checkpointer_;
  BackupHolds backups_;
  Admission admission_;
  std::unique_ptr<VolumeImpl> volume_;
  bool closed_ = false;
};

}  // namespace nacre::fs
