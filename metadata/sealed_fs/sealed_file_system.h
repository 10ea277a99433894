// SPDX-License-Identifier: Apache-2.0
// The file system that RocksDB sees. Every file is sealed, and every byte goes through
// BackingDirectory.
//
// It derives from rocksdb::FileSystem itself, not from a wrapper around the real one, so that no
// request of RocksDB reaches the disk in another way. Paths are those of BackingDirectory
// ("db/000004.sst"). Thread-safe. If it is read-only, nothing is written, and a call that would
// write returns read_only.
//
// It adds two rules to RocksDB's order of writes. A log is made durable before its successor is
// created, so after power loss a group is never there without those before it. A new log is
// durable, name and all, before it takes a byte, so a database without its log has lost it.
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
#include "metadata/sealed_fs/table_salts.h"

namespace nacre::metadata {

class SealedFileSystem final : public rocksdb::FileSystem {
 public:
  // padding is the volume's, and applies to the files that are made here.
  SealedFileSystem(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
                   bool read_only, engine::Padding padding);
  ~SealedFileSystem() override;

  // Checks the files that RocksDB is about to open (recovery_check.h). Must be the first call,
  // unless the database is new.
  Result<void> recover(std::string_view folder) NACRE_EXCLUDES(log_mutex_);

  const char* Name() const override { return "NacreSealedFileSystem"; }

  // Writes, and with sync also syncs, all that RocksDB wrote to its log so far; tries again what
  // failed. After no_space it may be called again later. Any other error is final: nothing can be
  // written any more.
  Result<void> settle_log(bool sync) NACRE_EXCLUDES(log_mutex_);
  std::uint64_t live_log_bytes() const NACRE_EXCLUDES(log_mutex_);
  // What only the log holds, once RocksDB has flushed all tables and while no thread writes.
  struct LogMark {
    std::string path;               // of the live log
    std::uint64_t stored_size = 0;  // of its frames up to now
    std::uint64_t manifest = 0;     // the manifest's number in its last witness
    std::uint64_t manifest_frames = 0;
  };
  // Makes durable in the live log that all logs before it are of no use any more. From then on the
  // live log is the only one that the database needs. Error: unsupported if there is no live log.
  Result<LogMark> retire_logs() NACRE_EXCLUDES(log_mutex_);
  // Seals the files of an older epoch anew that RocksDB keeps open or never replaces: manifest,
  // CURRENT, IDENTITY, OPTIONS. The other files go when RocksDB has replaced its tables and logs.
  Result<void> reseal_files(const std::string& folder);
  // Before a switch to the epoch of next: seals those of the needed tables anew that were not yet,
  // and returns how many. go_on is asked before each; its error ends the call. A table that is gone
  // or damaged is left to the switch.
  Result<std::size_t> prepare_switch(const std::string& folder, const std::set<std::string>& needed,
                                     const KeyTree& next,
                                     const std::function<Result<void>()>& go_on)
      NACRE_EXCLUDES(prepared_mutex_);
  Result<void> abandon_switch(const std::string& folder) NACRE_EXCLUDES(prepared_mutex_);
  // Begins a rotation to an epoch of format 2 (epoch_switch.h). next has that epoch, and needed
  // names the files that must be there. commit makes next's keys durable, and makes them the keys
  // of this file system. May be called only while no thread writes and RocksDB is at rest, and if
  // the logs before the live one are done. Error: busy. After any other error of commit, or after
  // commit, nothing can be written any more: the next opening finds out what counts.
  Result<void> switch_epoch(const std::string& folder, const std::set<std::string>& needed,
                            const KeyTree& next, const std::function<Result<void>()>& commit)
      NACRE_EXCLUDES(replacing_mutex_, log_mutex_, switch_mutex_);
  // The holds that keep files which RocksDB deletes meanwhile.
  const std::shared_ptr<FileHolds>& shared_holds() const { return holds_; }

  // What RocksDB is to write into the manifest of each table.
  std::shared_ptr<rocksdb::FileChecksumGenFactory> table_salts() const { return table_salts_; }

  // refuse is called before a table is made, on the thread that makes it. If it returns true,
  // making the table fails with no_space. Must be set before RocksDB opens the database.
  void refuse_tables_if(std::function<bool()> refuse) { refuse_table_ = std::move(refuse); }

  // The number of logs that RocksDB read to recover.
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
  // Opens a file only so that it can be cut to its content: a file is never appended to after it
  // was closed.
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
  // Not used: RocksDB gets an InfoLog instead.
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
  // Does nothing: the volume has a lock of its own.
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
  // By path, the salts of the files that were sealed anew.
  using Sources = std::map<std::string, FileSalt, std::less<>>;
  Result<Sources> reseal_finished(const std::string& folder, const std::set<std::string>& needed,
                                  const KeyTree& next) NACRE_REQUIRES(replacing_mutex_);
  // Keeps what prepare_switch() made for that epoch and the switch needs, and removes the rest.
  Result<void> keep_prepared(const std::string& folder, const std::set<std::string>& needed,
                             const KeyTree& next) NACRE_EXCLUDES(prepared_mutex_);
  std::optional<FileSalt> prepared_salt(const std::string& path, const KeyTree& next)
      NACRE_EXCLUDES(prepared_mutex_);
  // Forgets what was sealed for another epoch than that of next.
  void prepare_for_locked(const KeyTree& next) NACRE_REQUIRES(prepared_mutex_);
  // Calls make_resealed_table(), once for each salt and epoch. Error: tampered if the salt was used
  // before.
  Result<FileSalt> reseal_table(const std::string& path, const KeyTree& next)
      NACRE_EXCLUDES(prepared_mutex_);
  Result<void> check_tables_are(const Sources& sources) NACRE_EXCLUDES(tables_mutex_);
  Bytes current_content() const NACRE_REQUIRES(replacing_mutex_);
  Result<void> reopen_tables() NACRE_EXCLUDES(tables_mutex_);
  Result<std::shared_ptr<PageReader>> open_table(const std::string& path)
      NACRE_EXCLUDES(switch_mutex_, tables_mutex_);
  Result<void> reseal_file(const std::string& path) NACRE_EXCLUDES(replacing_mutex_, log_mutex_);
  Result<void> sync_replaced(const std::string& folder);
  bool is_done_log(std::string_view path) const NACRE_EXCLUDES(log_mutex_);
  Result<void> check_unchanged(const std::string& path, const FramesContent& content) const
      NACRE_EXCLUDES(log_mutex_);
  Result<std::uint64_t> plain_size(const std::string& path) const;

  const std::shared_ptr<BackingDirectory> directory_;
  const std::shared_ptr<const KeyTree> keys_;
  const bool read_only_;
  const engine::Padding padding_;
  const std::shared_ptr<FileHolds> holds_;
  const std::shared_ptr<TableSalts> table_salts_ = std::make_shared<TableSalts>();
  std::function<bool()> refuse_table_;
  const std::shared_ptr<FailStop> fail_stop_ = std::make_shared<FailStop>();
  std::atomic<std::uint64_t> logs_read_{0};
  mutable Mutex log_mutex_;
  std::shared_ptr<LogWriter> live_log_ NACRE_GUARDED_BY(log_mutex_);
  // The witness of the next log about the files before it.
  LogWitness witness_ NACRE_GUARDED_BY(log_mutex_);
  // Logs up to this number hold nothing that counts.
  std::uint64_t recovered_done_log_ NACRE_GUARDED_BY(log_mutex_) = 0;
  // Manifest and logs as recover() found them, by path, and whether they are still being read.
  std::map<std::string, FramesEnd, std::less<>> recovered_ends_ NACRE_GUARDED_BY(log_mutex_);
  bool is_recovering_ NACRE_GUARDED_BY(log_mutex_) = false;
  const std::shared_ptr<ManifestState> manifest_ = std::make_shared<ManifestState>();
  // Opening a table holds it shared. A switch of epochs, which gives tables other files, holds it
  // alone.
  SharedMutex switch_mutex_;
  // guards the next two; locked after switch_mutex_
  Mutex tables_mutex_;
  // The open tables.
  std::vector<std::weak_ptr<PageReader>> tables_ NACRE_GUARDED_BY(tables_mutex_);
  std::size_t tables_swept_at_ NACRE_GUARDED_BY(tables_mutex_) = 64;
  Mutex prepared_mutex_;  // guards the next three
  // Tables that were sealed anew for the epoch of a volume key, by path, with the salt of old and
  // new file.
  Sources prepared_ NACRE_GUARDED_BY(prepared_mutex_);
  engine::Sha256Digest prepared_for_ NACRE_GUARDED_BY(prepared_mutex_) = {};
  // The salts under which a table was sealed, or began to be, for that epoch.
  std::set<FileSalt> resealed_ NACRE_GUARDED_BY(prepared_mutex_);
  Mutex replacing_mutex_;  // held to rename or remove a file; guards the next two
  std::string live_manifest_path_ NACRE_GUARDED_BY(replacing_mutex_);
  std::weak_ptr<ManifestWriter> live_manifest_ NACRE_GUARDED_BY(replacing_mutex_);
  // RocksDB probes CURRENT, but no other frames file, for random access. If that fails it tries
  // once more, and if the second try succeeds, it blames direct I/O. So an error of the first probe
  // is kept.
  Mutex probe_mutex_;
  std::optional<Error> probe_error_ NACRE_GUARDED_BY(probe_mutex_);
};

}  // namespace nacre::metadata
