// SPDX-License-Identifier: Apache-2.0
// The interface to the backing directory. Every byte that a volume stores passes through it, in
// segments and in RocksDB's files, so that a test's fault device can lose power for both at once.
//
// Paths are relative to the volume's folder and use '/', at most one folder deep ("db/000004.sst").
// Messages of errors have the path and the system's text. The codes no_space, io, read_only,
// not_found, exists, permission and stale are kept distinct.
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

// An open file. Reads are thread-safe; only one thread at a time may write to a file. The
// destructor closes the file and does not sync it.
class BackingFile {
 public:
  virtual ~BackingFile() = default;
  // Reads up to out.size() bytes at offset. Returns fewer only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, MutableByteView out) = 0;
  // Writes the pieces one after the other at offset: all of them, or an error.
  virtual Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) = 0;
  Result<void> write(std::uint64_t offset, ByteView piece) {
    return write(offset, std::span<const ByteView>(&piece, 1));
  }
  // The same for data that will not be read soon, which need not stay in the system's cache. If the
  // file system can bypass its cache, that saves a copy and memory.
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
  // Makes the file at least this large, with room for all its bytes, so that later writes there
  // need no more room, as far as the file system can promise that. After no_space the file may have
  // any size in between.
  virtual Result<void> allocate(std::uint64_t size) = 0;
  // Whether the file has no name any more, because it was replaced or removed. False if that is not
  // known.
  virtual bool is_nameless() { return false; }
};

enum class OpenMode : std::uint8_t {
  read,             // must exist
  read_write,       // must exist; not_permitted if it has another name
  create_new,       // must not exist
  create_or_empty,  // a file of that name is removed first, not emptied
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
  // Replaces to. Both paths must be in one folder, so that one sync_directory() makes it durable.
  virtual Result<void> rename(std::string_view from, std::string_view to) = 0;
  virtual Result<void> make_directory(std::string_view path) = 0;  // no error if it exists
  virtual Result<bool> exists(std::string_view path) = 0;
  virtual Result<std::uint64_t> file_size(std::string_view path) = 0;
  // The names in a folder ("" is the volume's folder itself), sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(std::string_view folder) = 0;
  // Makes creations, removals and renames in a folder survive power loss.
  virtual Result<void> sync_directory(std::string_view folder) = 0;
  virtual Result<BackingSpace> space() = 0;
  // The place of this directory, for messages.
  virtual std::string description() const = 0;
};

// Opens a folder of the file system. Errors: not_found, not_directory, permission.
Result<std::shared_ptr<BackingDirectory>> open_posix_directory(const std::string& path);

// Read and replace whole small files. replace_file() writes "PATH.new", syncs it, renames it to
// PATH and syncs the folder, so after a crash PATH has the old or the new content.
Result<Bytes> read_file(BackingDirectory& directory, std::string_view path,
                        std::size_t size_max = 16u << 20);
Result<void> replace_file(BackingDirectory& directory, std::string_view path, ByteView content);

}  // namespace nacre::metadata
