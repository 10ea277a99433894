// SPDX-License-Identifier: Apache-2.0
// RocksdbStore::snapshot(): lists files, and how much of each, while RocksDB flushes and compacts.
//
// The order keeps the parts consistent. First all rows go to tables, and a witness in the live log
// says that no other log counts. The size of the manifest in that witness is then a lower bound for
// the manifest that is taken after it. RocksDB returns the manifest and the tables together.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>

#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/status.h"
#include "metadata/tables/rocksdb_store.h"

namespace nacre::metadata {

static_assert(database_file_size_bytes_min == file_header_size_bytes);
namespace {

constexpr std::string_view listing = "listing the database's files";
// RocksDB may be between two steps of a change of its manifest.
constexpr int try_count_max = 2000;
constexpr std::chrono::milliseconds try_pause{1};

std::string path_of(std::string_view name) {
  return fmt::format("{}/{}", database_folder, name);
}

// The end of the frames that hold plain_size bytes, and their number. Empty if no frame ends there.
struct FramesPrefix {
  std::uint64_t stored_size = 0;
  std::uint64_t frame_count = 0;
};
Result<std::optional<FramesPrefix>> prefix_of(BackingDirectory& directory, const std::string& path,
                                              const KeyTree& keys, std::uint64_t plain_size) {
  NACRE_ASSIGN(FrameBytes stored, FrameBytes::open(directory, path));
  NACRE_ASSIGN(const FileSeal seal,
               FileSeal::open(keys, path, stored.view(0, file_header_size_bytes)));
  Bytes content;
  FramesPrefix prefix{.stored_size = file_header_size_bytes};
  for (std::uint64_t plain = 0; plain < plain_size; prefix.frame_count++) {
    const auto frame = parse_frame(seal.header(), stored.frame_at(prefix.stored_size));
    if (!frame) return std::optional<FramesPrefix>();
    content.clear();
    if (!open_frame(seal, *frame, content)) {
      return fail_in_file(ErrorCode::tampered, path, "the tag of a frame is wrong");
    }
    if ((frame->header.flags & frame_flag_witness) == 0) plain += content.size();
    prefix.stored_size += frame->stored_size;
    if (plain > plain_size) return std::optional<FramesPrefix>();
  }
  return std::optional(prefix);
}

// Keeps files from being removed.
class Hold {
 public:
  Hold(std::shared_ptr<FileHolds> holds, std::vector<std::string> paths)
      : holds_(std::move(holds)), paths_(std::move(paths)) {
    holds_->hold(paths_);
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { holds_->release(paths_); }

 private:
  const std::shared_ptr<FileHolds> holds_;
  const std::vector<std::string> paths_;
};

}  // namespace

// Keeps the files that RocksDB lists, and returns them. Empty while RocksDB changes its manifest.
Result<std::optional<DatabaseSnapshot>> RocksdbStore::try_snapshot(
    const SealedFileSystem::LogMark& log) {
  // Until the listed files are kept, RocksDB may not remove any.
  if (const auto status = db_->DisableFileDeletions(); !status.ok()) {
    return tl::unexpected<Error>(to_error(status, listing));
  }
  std::vector<std::string> live;
  std::uint64_t manifest_size = 0;
  const auto status = db_->GetLiveFiles(live, &manifest_size, false);
  DatabaseSnapshot snapshot;
  std::vector<std::string> paths = {log.path};
  std::string manifest;
  if (status.ok()) {
    for (const auto& listed : live) {
      const std::string name = listed.substr(listed.find_first_not_of('/'));
      if (name == "CURRENT") continue;
      if (parse_file_name(name).file_class == FileClass::manifest) manifest = name;
      snapshot.files.push_back({.name = name});
      paths.push_back(path_of(name));
    }
    snapshot.hold = std::make_shared<Hold>(file_system_->shared_holds(), std::move(paths));
  }
  if (const auto enabled = enable_file_deletions(); !status.ok() || !enabled.ok()) {
    return tl::unexpected<Error>(to_error(status.ok() ? enabled : status, listing));
  }

  const std::string current = path_of("CURRENT");
  NACRE_ASSIGN(const FramesContent named, read_frames(*directory_, current, *keys_));
  NACRE_ASSIGN(snapshot.current, read_file(*directory_, current));
  NACRE_ASSIGN(const auto prefix, prefix_of(*directory_, path_of(manifest), *keys_, manifest_size));
  const std::uint64_t number = parse_file_name(manifest).number;
  const bool agree = as_text(named.plain) == manifest + "\n" && prefix &&
                     (number > log.manifest ||
                      (number == log.manifest && prefix->frame_count >= log.manifest_frames));
  if (!agree) return std::optional<DatabaseSnapshot>();
  snapshot.files.push_back({.name = "IDENTITY"});
  for (DatabaseFile& file : snapshot.files) {
    NACRE_ASSIGN(file.size, directory_->file_size(path_of(file.name)));
    if (file.name == manifest) file.size = prefix->stored_size;
  }
  snapshot.files.push_back(
      {.name = log.path.substr(database_folder.size() + 1), .size = log.stored_size});
  return std::optional(std::move(snapshot));
}

Result<bool> log_has_rows(BackingDirectory& directory, std::string_view path) {
  NACRE_ASSIGN(FrameBytes stored, FrameBytes::open(directory, path));
  if (is_unborn_log(path, stored)) return false;
  const auto header = decode_file_header(stored.view(0, file_header_size_bytes));
  if (!header) return add_context(header.error(), path);
  std::uint64_t at = file_header_size_bytes;
  while (const auto frame = parse_frame(*header, stored.frame_at(at))) {
    if ((frame->header.flags & frame_flag_witness) == 0) return true;
    at += frame->stored_size;
  }
  return false;
}

bool RocksdbStore::has_flushed_everything() const {
  std::vector<rocksdb::ColumnFamilyHandle*> all(families_.begin(), families_.end());
  all.push_back(default_family_);
  for (rocksdb::ColumnFamilyHandle* family : all) {
    for (const auto& property : {rocksdb::DB::Properties::kNumEntriesActiveMemTable,
                                 rocksdb::DB::Properties::kNumImmutableMemTable}) {
      std::uint64_t count = 0;
      if (!db_->GetIntProperty(family, property, &count) || count > 0) return false;
    }
  }
  return true;
}

// A flush after a failed one may return before the rows of both are in tables, so it is repeated.
Result<void> RocksdbStore::flush_everything() {
  int attempt = 0;
  do {
    if (attempt++ == try_count_max) {
      return fail(
          ErrorCode::busy,
          "the database had no time to write its tables: try again when fewer programs write");
    }
    if (attempt > 1) std::this_thread::sleep_for(try_pause);
    NACRE_TRY(flush());
  } while (!has_flushed_everything());
  return {};
}

Result<DatabaseSnapshot> RocksdbStore::snapshot() {
  NACRE_TRY(flush_everything());
  NACRE_ASSIGN(const auto log, file_system_->retire_logs());
  for (int attempt = 0; attempt < try_count_max; attempt++) {
    NACRE_ASSIGN(auto snapshot, try_snapshot(log));
    if (snapshot) return std::move(*snapshot);
    std::this_thread::sleep_for(try_pause);
  }
  return fail(ErrorCode::busy, "the database's manifest keeps changing; try again");
}

}  // namespace nacre::metadata
