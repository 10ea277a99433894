// SPDX-License-Identifier: Apache-2.0
// The file system that RocksDB runs on.
#include "metadata/sealed_fs/sealed_file_system.h"

#include <fmt/format.h>

#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/page_layout.h"
#include "metadata/sealed_fs/reseal_files.h"
#include "metadata/sealed_fs/rocksdb_files.h"
#include "metadata/sealed_fs/status.h"

namespace nacre::metadata {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// RocksDB would write its options at every opening, and read them back to compare. That is most of
// the time of an opening, for a file that nothing reads.
bool is_options_file(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("OPTIONS-");
}

// RocksDB composes paths freely: "db//LOG", "db/".
std::string normal_path(const std::string& path) {
  std::string normal;
  for (const char c : path) {
    if (c != '/' || (!normal.empty() && normal.back() != '/')) normal += c;
  }
  if (!normal.empty() && normal.back() == '/') normal.pop_back();
  return normal;
}

class Folder final : public rocksdb::FSDirectory {
 public:
  Folder(std::shared_ptr<BackingDirectory> directory, std::string path,
         std::shared_ptr<ManifestState> manifest)
      : directory_(std::move(directory)), path_(std::move(path)), manifest_(std::move(manifest)) {}
  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    return without_exceptions([&] {
      auto synced = directory_->sync_directory(path_);
      if (synced) manifest_->folder_synced();
      return to_io_status(synced);
    });
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }

 private:
  std::shared_ptr<BackingDirectory> directory_;
  std::string path_;
  std::shared_ptr<ManifestState> manifest_;
};

class NoLock final : public rocksdb::FileLock {};

// RocksDB also looks for tables under a name that LevelDB used. A message should not contain that
// name.
std::string message_path(const std::string& path) {
  constexpr std::string_view old_suffix = ".ldb";
  if (!path.ends_with(old_suffix)) return path;
  return path.substr(0, path.size() - old_suffix.size()) + ".sst";
}

IOStatus open_status(const Error& error, const std::string& path) {
  if (error.code == ErrorCode::not_found) {
    return to_io_status(Error{ErrorCode::missing, message_path(path) + ": the file is missing"});
  }
  const bool is_small = parse_file_name(path).file_class == FileClass::other;
  return is_small ? to_plain_io_error(error) : to_io_status(error);
}

IOStatus no_room_for_table(const std::string& path) {
  return to_io_status(Error{ErrorCode::no_space, message_path(path) + ": little room is left"});
}

}  // namespace

SealedFileSystem::SealedFileSystem(std::shared_ptr<BackingDirectory> directory,
                                   std::shared_ptr<const KeyTree> keys, bool read_only,
                                   engine::Padding padding)
    : directory_(std::move(directory)),
      keys_(std::move(keys)),
      read_only_(read_only),
      padding_(padding),
      holds_(std::make_shared<FileHolds>(directory_)) {}

SealedFileSystem::~SealedFileSystem() = default;

Result<void> SealedFileSystem::check_writable(std::string_view path) const {
  if (!read_only_) return fail_stop_->check();
  return fail(ErrorCode::read_only, fmt::format("{}: the volume is open for reading only", path));
}

Result<void> SealedFileSystem::settle_log(bool sync) {
  std::shared_ptr<LogWriter> log;
  {
    LockGuard lock(log_mutex_);
    log = live_log_;
  }
  return log == nullptr ? fail_stop_->check() : log->settle(sync);
}

std::uint64_t SealedFileSystem::live_log_bytes() const {
  LockGuard lock(log_mutex_);
  const auto log = live_log_;
  return log == nullptr ? 0 : log->stored_bytes();
}

Result<std::shared_ptr<LogWriter>> SealedFileSystem::create_log(const std::string& path) {
  NACRE_ASSIGN(FileSeal seal, FileSeal::create(*keys_, path, padding_));
  LockGuard lock(log_mutex_);
  is_recovering_ = false;
  manifest_->durable().write_to(witness_);
  auto log =
      std::make_shared<LogWriter>(directory_, std::move(seal), live_log_, witness_, fail_stop_);
  if (auto made = log->ensure_exists(); !made && made.error().code != ErrorCode::no_space) {
    return tl::unexpected<Error>(made.error());
  }
  live_log_ = log;
  witness_.previous_log = parse_file_name(path).number;
  return log;
}

ManifestLink SealedFileSystem::newest_log_locked() const {
  if (live_log_ != nullptr) return live_log_->name();
  return {.log = witness_.previous_log, .salt = witness_.previous_salt};
}

// A log is removed only after its successor is there and says that the log is done.
Result<void> SealedFileSystem::release_log(std::uint64_t number) {
  LockGuard lock(log_mutex_);
  return release_log_locked(number);
}

Result<void> SealedFileSystem::release_log_locked(std::uint64_t number) {
  if (live_log_ == nullptr || number <= witness_.done_log) return {};
  const auto manifest = manifest_->durable();
  NACRE_TRY(live_log_->write_witness(number, manifest));
  witness_.done_log = number;
  return {};
}

Result<SealedFileSystem::LogMark> SealedFileSystem::retire_logs() {
  LockGuard lock(log_mutex_);
  if (live_log_ == nullptr) return fail(ErrorCode::unsupported, "the database has no log to write");
  // witness_ is what the next log will say, so its previous_log is the live log.
  NACRE_TRY(release_log_locked(witness_.previous_log - 1));
  NACRE_TRY(live_log_->settle(true));
  const LogWitness said = live_log_->witness();
  return LogMark{.path = live_log_->path(),
                 .stored_size = live_log_->stored_bytes(),
                 .manifest = said.manifest,
                 .manifest_frames = said.manifest_frames};
}

// Until the folder is synced, power loss may bring the old file back, and what was appended to the
// new one would be lost. So nothing is appended before the sync, and nothing ever if it fails.
Result<void> SealedFileSystem::sync_replaced(const std::string& folder) {
  auto synced = directory_->sync_directory(folder);
  if (!synced) fail_stop_->stop(synced.error());
  return synced;
}

Result<void> SealedFileSystem::reseal_file(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/'));
  LockGuard lock(replacing_mutex_);
  const auto manifest = live_manifest_.lock();
  if (manifest != nullptr && path == live_manifest_path_) {
    // No other log may be made meanwhile: it would name the manifest as it was.
    LockGuard log_lock(log_mutex_);
    return manifest->reseal(*directory_, *keys_, padding_, newest_log_locked(),
                            [&] { return sync_replaced(folder); });
  }
  ResealChanges changes;
  if (path == folder + "/CURRENT") changes.expected_content = current_content();
  auto fresh = reseal_frames_file(*directory_, path, *keys_, padding_, changes);
  if (!fresh && fresh.error().code == ErrorCode::not_found) return {};
  if (!fresh) return tl::unexpected(fresh.error());
  return *fresh ? sync_replaced(folder) : Result<void>();
}

Result<void> SealedFileSystem::reseal_files(const std::string& folder) {
  NACRE_TRY(check_writable(folder));
  NACRE_ASSIGN(const EpochFormat format, keys_->epoch_format(keys_->current_epoch_number()));
  // In format 2 switch_epoch() has done it, and no other file counts.
  if (format != EpochFormat::one) return {};
  NACRE_ASSIGN(const auto paths,
               list_files_of_other_epochs(*directory_, folder, keys_->current_epoch_number()));
  for (const auto& path : paths) {
    const FileClass file_class = parse_file_name(path).file_class;
    if (file_class == FileClass::manifest || file_class == FileClass::other) {
      NACRE_TRY(reseal_file(path));
    }
  }
  return {};
}

bool SealedFileSystem::is_done_log(std::string_view path) const {
  LockGuard lock(log_mutex_);
  return parse_file_name(path).number <= recovered_done_log_;
}

IOStatus SealedFileSystem::NewSequentialFile(const std::string& raw_path, const FileOptions&,
                                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                             IODebugContext*) {
  return without_exceptions([&] {
    const std::string path = normal_path(raw_path);
    const FileClass file_class = parse_file_name(path).file_class;
    if (file_class == FileClass::table) {
      auto reader = open_table(path);
      if (!reader) return open_status(reader.error(), path);
      *result = make_sequential_file(std::move(*reader));
      return IOStatus::OK();
    }
    if (file_class == FileClass::log && is_done_log(path)) {
      logs_read_++;
      *result = make_sequential_file(Bytes());
      return IOStatus::OK();
    }
    auto content = read_frames(*directory_, path, *keys_);
    if (!content) return open_status(content.error(), path);
    if (auto same = check_unchanged(path, *content); !same) {
      return open_status(same.error(), path);
    }
    if (file_class == FileClass::log) logs_read_++;
    *result = make_sequential_file(std::move(content->plain));
    return IOStatus::OK();
  });
}

IOStatus SealedFileSystem::NewRandomAccessFile(const std::string& raw_path, const FileOptions&,
                                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                               IODebugContext*) {
  return without_exceptions([&] {
    const std::string path = normal_path(raw_path);
    if (parse_file_name(path).file_class == FileClass::table) {
      auto reader = open_table(path);
      if (!reader) return open_status(reader.error(), path);
      *result = make_random_access_file(std::move(*reader));
      return IOStatus::OK();
    }
    LockGuard lock(probe_mutex_);
    if (probe_error_) return open_status(*probe_error_, path);
    auto content = read_frames(*directory_, path, *keys_);
    if (!content) {
      probe_error_ = content.error();
      return open_status(content.error(), path);
    }
    *result = make_random_access_file(std::move(content->plain));
    return IOStatus::OK();
  });
}

IOStatus SealedFileSystem::NewWritableFile(const std::string& raw_path, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                                           IODebugContext*) {
  return without_exceptions([&] {
    const std::string path = normal_path(raw_path);
    if (auto writable = check_writable(path); !writable) return to_io_status(writable);
    if (is_options_file(path)) return IOStatus::NotSupported("options are not kept", path);
    const FileClass file_class = parse_file_name(path).file_class;
    if (file_class == FileClass::table) {
      if (refuse_table_ && refuse_table_()) return no_room_for_table(path);
      auto writer = PageWriter::create(*directory_, path, *keys_, padding_);
      if (!writer) return to_io_status(writer.error());
      const FileHeader& header = (*writer)->header();
      if (header.format != EpochFormat::one) table_salts_->note(path, header.salt);
      *result = make_writable_file(
          std::move(*writer), [this] { return fail_stop_->check(); }, options);
    } else if (file_class == FileClass::log) {
      auto writer = create_log(path);
      if (!writer) return to_io_status(writer.error());
      *result = make_writable_file(std::move(*writer), options);
    } else {
      auto seal = FileSeal::create(*keys_, path, padding_);
      if (!seal) return to_io_status(seal.error());
      auto writer = std::make_unique<FrameWriter>(directory_, std::move(*seal));
      if (file_class == FileClass::manifest && writer->header().format != EpochFormat::one) {
        LockGuard lock(log_mutex_);
        writer->append_link(newest_log_locked());
      }
      if (auto made = writer->open(); !made) return to_io_status(made);
      if (file_class == FileClass::manifest) {
        auto manifest = std::make_shared<ManifestWriter>(std::move(writer),
                                                         parse_file_name(path).number, manifest_);
        {
          LockGuard lock(replacing_mutex_);
          live_manifest_path_ = path;
          live_manifest_ = manifest;
        }
        // A manifest makes tables count. The rows that they hold must be safe in the log first.
        *result = make_writable_file(
            std::move(manifest), [this] { return settle_log(true); }, options);
      } else {
        *result = make_writable_file(
            std::move(writer), [this] { return fail_stop_->check(); }, options);
      }
    }
    return IOStatus::OK();
  });
}

IOStatus SealedFileSystem::ReopenWritableFile(const std::string& raw_path, const FileOptions&,
                                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                                              IODebugContext*) {
  return without_exceptions([&] {
    const std::string path = normal_path(raw_path);
    if (auto writable = check_writable(path); !writable) return to_io_status(writable);
    if (parse_file_name(path).file_class != FileClass::log) {
      return IOStatus::NotSupported("only logs are reopened", path);
    }
    *result = make_trim_only_file([directory = directory_, keys = keys_, path] {
      return trim_frames(*directory, path, *keys);
    });
    return IOStatus::OK();
  });
}

IOStatus SealedFileSystem::ReuseWritableFile(const std::string& path, const std::string&,
                                             const FileOptions&,
                                             std::unique_ptr<rocksdb::FSWritableFile>*,
                                             IODebugContext*) {
  return IOStatus::NotSupported("logs are not recycled", path);
}

IOStatus SealedFileSystem::NewDirectory(const std::string& path, const IOOptions&,
                                        std::unique_ptr<rocksdb::FSDirectory>* result,
                                        IODebugContext*) {
  *result = std::make_unique<Folder>(directory_, normal_path(path), manifest_);
  return IOStatus::OK();
}

IOStatus SealedFileSystem::NewLogger(const std::string& path, const IOOptions&,
                                     std::shared_ptr<rocksdb::Logger>*, IODebugContext*) {
  return IOStatus::NotSupported("the information log is not made here", path);
}

IOStatus SealedFileSystem::FileExists(const std::string& path, const IOOptions&, IODebugContext*) {
  return without_exceptions([&] {
    auto exists = directory_->exists(normal_path(path));
    if (!exists) return to_io_status(exists.error());
    return *exists ? IOStatus::OK() : IOStatus::NotFound(path);
  });
}

IOStatus SealedFileSystem::GetChildren(const std::string& path, const IOOptions&,
                                       std::vector<std::string>* result, IODebugContext*) {
  return without_exceptions([&] {
    auto names = directory_->list(normal_path(path));
    if (!names && names.error().code == ErrorCode::not_found) return IOStatus::NotFound(path);
    if (!names) return to_io_status(names.error());
    *result = std::move(*names);
    return IOStatus::OK();
  });
}

IOStatus SealedFileSystem::DeleteFile(const std::string& raw_path, const IOOptions&,
                                      IODebugContext*) {
  return without_exceptions([&] {
    const std::string path = normal_path(raw_path);
    if (auto writable = check_writable(path); !writable) return to_io_status(writable);
    const FileName name = parse_file_name(path);
    if (name.file_class == FileClass::log) {
      if (auto released = release_log(name.number); !released) return to_io_status(released);
    }
    // The table is left then. The next opening removes it if no manifest names it.
    if (name.file_class == FileClass::table && manifest_->may_name_lost_tables())
      return IOStatus::OK();
    LockGuard lock(replacing_mutex_);
    return to_io_status(holds_->remove(path));
  });
}

IOStatus SealedFileSystem::CreateDir(const std::string& raw_path, const IOOptions&,
                                     IODebugContext*) {
  return without_exceptions([&] {
    const std::string path = normal_path(raw_path);
    if (auto writable = check_writable(path); !writable) return to_io_status(writable);
    return to_io_status(directory_->make_directory(path));
  });
}

IOStatus SealedFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                              IODebugContext* debug) {
  if (FileExists(path, options, debug).ok()) return IOStatus::OK();
  return CreateDir(path, options, debug);
}

IOStatus SealedFileSystem::DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) {
  return IOStatus::NotSupported("folders are not removed", path);
}

Result<std::uint64_t> SealedFileSystem::plain_size(const std::string& path) const {
  if (parse_file_name(path).file_class != FileClass::table) {
    NACRE_ASSIGN(const FramesContent content, read_frames(*directory_, path, *keys_));
    return content.plain.size();
  }
  return table_content_size(*directory_, path, *keys_);
}

IOStatus SealedFileSystem::GetFileSize(const std::string& raw_path, const IOOptions&,
                                       std::uint64_t* size, IODebugContext*) {
  return without_exceptions([&] {
    const std::string path = normal_path(raw_path);
    auto found = plain_size(path);
    if (!found) return open_status(found.error(), path);
    *size = *found;
    return IOStatus::OK();
  });
}

IOStatus SealedFileSystem::GetFileModificationTime(const std::string&, const IOOptions&,
                                                   std::uint64_t* time, IODebugContext*) {
  *time = 0;  // unknown; tables carry their times inside
  return IOStatus::OK();
}

IOStatus SealedFileSystem::RenameFile(const std::string& raw_from, const std::string& raw_to,
                                      const IOOptions&, IODebugContext*) {
  return without_exceptions([&] {
    const std::string from = normal_path(raw_from);
    const std::string to = normal_path(raw_to);
    if (auto writable = check_writable(to); !writable) return to_io_status(writable);
    const std::string lasting = lasting_file_name(from);
    if (parse_file_name(to).file_class != FileClass::other || lasting != lasting_file_name(to)) {
      return to_io_status(fail_in_file(ErrorCode::unsupported, from,
                                       fmt::format("was sealed to be {}, not {}", lasting, to)));
    }
    LockGuard lock(replacing_mutex_);
    auto renamed = directory_->rename(from, to);
    if (renamed && to.ends_with("/CURRENT")) manifest_->current_renamed();
    return to_io_status(renamed);
  });
}

IOStatus SealedFileSystem::LockFile(const std::string&, const IOOptions&, rocksdb::FileLock** lock,
                                    IODebugContext*) {
  *lock = new NoLock;
  return IOStatus::OK();
}

IOStatus SealedFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions&, IODebugContext*) {
  delete lock;
  return IOStatus::OK();
}

IOStatus SealedFileSystem::GetTestDirectory(const IOOptions&, std::string*, IODebugContext*) {
  return IOStatus::NotSupported("there is no test folder");
}

IOStatus SealedFileSystem::GetAbsolutePath(const std::string& path, const IOOptions&,
                                           std::string* result, IODebugContext*) {
  *result = path;
  return IOStatus::OK();
}

IOStatus SealedFileSystem::GetFreeSpace(const std::string&, const IOOptions&, std::uint64_t*,
                                        IODebugContext*) {
  // If it knew the free space, RocksDB would watch it after no_space and resume by itself, at a
  // time of its own.
  return IOStatus::NotSupported("Database resumes by hand");
}

IOStatus SealedFileSystem::IsDirectory(const std::string& raw_path, const IOOptions&,
                                       bool* is_directory, IODebugContext*) {
  *is_directory = normal_path(raw_path).find('/') == std::string::npos;  // db/ or the volume itself
  return IOStatus::OK();
}

}  // namespace nacre::metadata
