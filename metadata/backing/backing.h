// SPDX-License-Identifier: Apache-2.0
// The seam to the backing directory: every byte that a volume stores passes through here, segments
// and RocksDB files alike, so one fault device under it can lose power for both at once.
//
// Paths are relative to the volume directory and use '/', at most one folder deep
// ("db/000004.sst"). Errors carry the path and the system's words; ErrorCode::no_space, io,
// read_only, not_found, exists, permission, stale are kept apart.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::metadata {

// An open file. Thread-safe for reads; writes to one file come from one thread at a time. Closed by
// the destructor, which syncs nothing.
class BackingFile {
 public:
  virtual ~BackingFile() = default;
  // Reads up to out.size() bytes at offset; fewer only where the file ends.
  virtual Result<std::size_t> read(std::uint64_t offset, MutableByteView out) = 0;
  // Writes the pieces one after the other at offset: all of them, or an error.
  virtual Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) = 0;
  Result<void> write(std::uint64_t offset, ByteView piece) {
    return write(offset, std::span<const ByteView>(&piece, 1));
  }
  // The same, for what nobody reads soon: it need not stay in the system's cache. Where the file
  // system can do without, that saves a copy and the room.
  virtual Result<void> write_past_cache(std::uint64_t offset, std::span<const ByteView> pieces) {
    return write(offset, pieces);
  }
  // Makes all data written so far, and the size, survive power loss (fdatasync).
  virtual Result<void> sync() = 0;
  // A hint: begin writing [offset, offset + size) to the medium without waiting.
  virtual void start_writeback(std::uint64_t offset, std::uint64_t size) = 0;
  // A hint: these bytes will be read soon (true) or not again (false).
  virtual void advise(std::uint64_t offset, std::uint64_t size, bool will_need) = 0;
  virtual Result<std::uint64_t> size() = 0;
  virtual Result<void> truncate(std::uint64_t size) = 0;
  // Makes the file at least that large, and its bytes take up room: to write there needs no more of
  // it, where the file system can promise that. no_space leaves the file in between.
  virtual Result<void> allocate(std::uint64_t size) = 0;
  // Whether no name leads to it any more: it was replaced or removed. False where nobody knows.
  virtual bool is_nameless() { return false; }
};

enum class OpenMode : std::uint8_t {
  read,             // must exist
  read_write,       // must exist, and have no other name: not_permitted
  create_new,       // must not exist
  create_or_empty,  // made; a file of that name is removed first, not emptied
};

struct BackingSpace {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;       // for root
  std::uint64_t available_bytes = 0;  // for this user
  std::uint64_t free_files = 0;
};

// A volume directory. Thread-safe.
class BackingDirectory {
 public:
  virtual ~BackingDirectory() = default;
  virtual Result<std::unique_ptr<BackingFile>> open(std::string_view path, OpenMode mode) = 0;
  virtual Result<void> remove(std::string_view path) = 0;  // a file, or an empty folder
  // Replaces to. Within one folder only, so that one sync_directory makes it durable.
  virtual Result<void> rename(std::string_view from, std::string_view to) = 0;
  virtual Result<void> make_directory(std::string_view path) = 0;  // exists: fine
  virtual Result<bool> exists(std::string_view path) = 0;
  virtual Result<std::uint64_t> file_size(std::string_view path) = 0;
  // Names in a folder ("" = the volume directory itself), sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(std::string_view folder) = 0;
  // Makes creations, removals and renames in a folder survive power loss.
  virtual Result<void> sync_directory(std::string_view folder) = 0;
  virtual Result<BackingSpace> space() = 0;
  // For messages: where this is.
  virtual std::string description() const = 0;
};

// The real one. not_found, not_directory, permission.
Result<std::shared_ptr<BackingDirectory>> open_posix_directory(const std::string& path);

// Whole small files. replace_file writes "PATH.new", syncs, renames over PATH and syncs the folder:
// after a crash PATH is old or new.
Result<Bytes> read_file(BackingDirectory& directory, std::string_view path,
                        std::size_t size_max = 16u << 20);
Result<void> replace_file(BackingDirectory& directory, std::string_view path, ByteView content);

}  // namespace nacre::metadata
