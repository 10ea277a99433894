// SPDX-License-Identifier: Apache-2.0
// The file system that RocksDB sees: every file sealed, every byte through BackingDirectory.
//
// It derives from rocksdb::FileSystem itself, not from a wrapper around the real one, so that
// nothing RocksDB asks for can slip past to the disk. Paths are those of BackingDirectory
// ("db/000004.sst"). Thread-safe. Read-only: nothing is written, and whoever tries gets read_only.
//
// Order that it adds to RocksDB's: a log is made durable before its successor is created, so after
// power loss a group is never there without those before it; and a new log is durable, name and
// all, before it takes a byte, so a database without its log has lost it.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/sealed_fs/file_holds.h"
#include "metadata/sealed_fs/log_writer.h"
#include "metadata/sealed_fs/manifest_state.h"
#include "metadata/sealed_fs/page_file.h"

namespace nacre::metadata {

class SealedFileSystem final : public rocksdb::FileSystem {
 public:
  // padding: the volume's; of the files that are made here.
  SealedFileSystem(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
                   bool read_only, engine::Padding padding);
  ~SealedFileSystem() override;

  // Checks what RocksDB is about to open; see recovery_check.h. Before anything else but for a new
  // database.
  Result<void> recover(std::string_view folder) NACRE_EXCLUDES(log_mutex_);

  const char* Name() const override { return "NacreSealedFileSystem"; }

  // Whether all that RocksDB wrote to its log so far is written (and synced); tries again what
  // failed. no_space: ask again later; any other error is final, and nothing can be written any
  // more.
  Result<void> settle_log(bool sync) NACRE_EXCLUDES(log_mutex_);
  std::uint64_t live_log_bytes() const NACRE_EXCLUDES(log_mutex_);
  // What the log alone holds, once RocksDB has flushed all tables and while nobody writes.
  struct LogMark {
    std::string path;               // of the live log
    std::uint64_t stored_size = 0;  // its frames up to now
    std::uint64_t manifest = 0;     // what its last witness says of the manifest
    std::uint64_t manifest_frames = 0;
  };
  // Makes durable in the live log that all logs before it are of no use any more: from then on the
  // live one is all the logs that the database needs. unsupported when there is none.
  Result<LogMark> retire_logs() NACRE_EXCLUDES(log_mutex_);
  // Seals anew what is of an older epoch and RocksDB keeps open or never replaces: manifest,
  // CURRENT, IDENTITY, OPTIONS. The rest goes when RocksDB has other tables and logs.
  Result<void> reseal_files(const std::string& folder);
  // Begins a rotation to an epoch of format 2 (epoch_switch.h): next has it, needed names the files
  // that must be there, commit makes next's keys durable and these keys. Only while nobody writes
  // and RocksDB is at rest; logs before the live one must be done. busy; after any other error of
  // commit or behind it nothing can be written any more: the next opening finds out what counts.
  Result<void> switch_epoch(const std::string& folder, const std::set<std::string>& needed,
                            const KeyTree& next, const std::function<Result<void>()>& commit)
      NACRE_EXCLUDES(replacing_mutex_, log_mutex_, switch_mutex_);
  // Keep files that RocksDB deletes meanwhile.
  const std::shared_ptr<FileHolds>& shared_holds() const { return holds_; }

  // Asked before a table is made, on the thread that makes it; true: it meets no_space. Before
  // RocksDB opens.
  void refuse_tables_if(std::function<bool()> refuse) { refuse_table_ = std::move(refuse); }

  // Logs that RocksDB read to recover.
  std::uint64_t logs_read() const { return logs_read_; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext*) override;
  // Only to be cut to its content: a file is never appended to after it was closed.
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext*) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* result,
                                      rocksdb::IODebugContext*) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext*) override;
  // InfoLog is given to RocksDB instead.
  rocksdb::IOStatus NewLogger(const std::string& path, const rocksdb::IOOptions& options,
                              std::shared_ptr<rocksdb::Logger>* result,
                              rocksdb::IODebugContext*) override;

  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetChildren(const std::string& path, const rocksdb::IOOptions& options,
                                std::vector<std::string>* result,
                                rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext*) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext*) override;
  rocksdb::IOStatus DeleteDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext*) override;
  // The size of the content, not of what is stored.
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                std::uint64_t* size, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFileModificationTime(const std::string& path,
                                            const rocksdb::IOOptions& options, std::uint64_t* time,
                                            rocksdb::IODebugContext*) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext*) override;
  // The volume's lock is elsewhere.
  rocksdb::IOStatus LockFile(const std::string& path, const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock* lock, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetTestDirectory(const rocksdb::IOOptions& options, std::string* path,
                                     rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetAbsolutePath(const std::string& path, const rocksdb::IOOptions& options,
                                    std::string* result, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                 std::uint64_t* bytes, rocksdb::IODebugContext*) override;
  rocksdb::IOStatus IsDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                bool* is_directory, rocksdb::IODebugContext*) override;

 private:
  Result<void> check_writable(std::string_view path) const;
  Result<std::shared_ptr<LogWriter>> create_log(const std::string& path) NACRE_EXCLUDES(log_mutex_);
  Result<void> release_log(std::uint64_t number) NACRE_EXCLUDES(log_mutex_);
  Result<void> release_log_locked(std::uint64_t number) NACRE_REQUIRES(log_mutex_);
  ManifestLink newest_log_locked() const NACRE_REQUIRES(log_mutex_);
  Result<std::vector<std::string>> reseal_finished(const std::string& folder,
                                                   const std::set<std::string>& needed,
                                                   const KeyTree& next);
  Result<void> reopen_tables() NACRE_EXCLUDES(tables_mutex_);
  Result<std::shared_ptr<PageReader>> open_table(const std::string& path)
      NACRE_EXCLUDES(switch_mutex_, tables_mutex_);
  Result<void> reseal_file(const std::string& path) NACRE_EXCLUDES(replacing_mutex_, log_mutex_);
  Result<void> sync_replaced(const std::string& folder);
  bool is_done_log(std::string_view path) const NACRE_EXCLUDES(log_mutex_);
  Result<void> check_frame_count(const std::string& path, std::uint64_t count) const
      NACRE_EXCLUDES(log_mutex_);
  Result<std::uint64_t> plain_size(const std::string& path) const;

  const std::shared_ptr<BackingDirectory> directory_;
  const std::shared_ptr<const KeyTree> keys_;
  const bool read_only_;
  const engine::Padding padding_;
  const std::shared_ptr<FileHolds> holds_;
  std::function<bool()> refuse_table_;
  const std::shared_ptr<FailStop> fail_stop_ = std::make_shared<FailStop>();
  std::atomic<std::uint64_t> logs_read_{0};
  mutable Mutex log_mutex_;
  std::shared_ptr<LogWriter> live_log_ NACRE_GUARDED_BY(log_mutex_);
  LogWitness witness_ NACRE_GUARDED_BY(log_mutex_);  // what the next log says of those before it
  // Logs up to it hold nothing that counts.
  std::uint64_t recovered_done_log_ NACRE_GUARDED_BY(log_mutex_) = 0;
  // As recover() found them.
  std::map<std::string, std::uint64_t, std::less<>> frame_counts_ NACRE_GUARDED_BY(log_mutex_);
  const std::shared_ptr<ManifestState> manifest_ = std::make_shared<ManifestState>();
  // Whoever opens a table holds it while that happens; alone: its file may become another.
  SharedMutex switch_mutex_;
  Mutex tables_mutex_;  // before it switch_mutex_
  std::vector<std::weak_ptr<PageReader>> tables_ NACRE_GUARDED_BY(tables_mutex_);  // that are open
  std::size_t tables_swept_at_ NACRE_GUARDED_BY(tables_mutex_) = 64;
  Mutex replacing_mutex_;  // held while a file is renamed or removed
  std::string live_manifest_path_ NACRE_GUARDED_BY(replacing_mutex_);
  std::weak_ptr<ManifestWriter> live_manifest_ NACRE_GUARDED_BY(replacing_mutex_);
  // RocksDB probes CURRENT (of frames files no other) for random access; when that fails it tries
  // once more, and if it then succeeds, blames direct I/O. So an error stays.
  Mutex probe_mutex_;
  std::optional<Error> probe_error_ NACRE_GUARDED_BY(probe_mutex_);
};

}  // namespace nacre::metadata
