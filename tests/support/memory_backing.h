// SPDX-License-Identifier: Apache-2.0
// A volume directory in memory that knows what power loss may take.
//
// The model. A write or a truncation becomes durable when a later sync of its file succeeds. A
// creation, removal, rename or made folder becomes durable when a later sync_directory of the
// folder that holds the name succeeds; syncing a file does not make its name durable. Nothing
// orders files or folders among each other but these syncs. When power is lost
//   - each unsynced write of a file is kept, lost, or torn (then only some of its sectors of 512
//     bytes are kept). Bytes below the size that no kept write covers read as zeros;
//   - the unsynced changes of a folder are kept up to some change, and all later ones are lost;
//   - after a sync that failed, the writes that it should have saved may be lost for ever. A later
//     sync that succeeds does not cover them (Linux drops dirty pages if writing them back fails).
//
// Changes are numbered from 0 in the order in which they happen: creations (also those that empty a
// file), writes, truncations, syncs, removals, renames, made folders, synced folders. Failures name
// them by that number, so a test can fail at each one in turn. Reads are not numbered.
//
// Thread-safe, as are its files: one lock, so a snapshot is a moment that all threads agree on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "metadata/backing/backing.h"

namespace nacre::tests {

// The operations to which a failure applies. Values may be or-ed together.
enum : std::uint32_t {
  change_create = 1u << 0,
  change_write = 1u << 1,
  change_truncate = 1u << 2,
  change_sync = 1u << 3,
  change_remove = 1u << 4,
  change_rename = 1u << 5,
  change_make_directory = 1u << 6,
  change_sync_directory = 1u << 7,
  change_any = 0xff,
  operation_read = 1u << 8,  // BackingFile::read, also of read_file()
};

// Fails operations that match, with code. Several may be set; the first that matches counts.
struct InjectedFailure {
  std::uint32_t operations = change_any;
  std::string path_part;        // of the paths that match; empty: all
  std::uint64_t skip = 0;       // matching operations that still succeed
  std::uint64_t count = ~0ull;  // matching operations that then fail
  ErrorCode code = ErrorCode::io;
  // A write fails and leaves the first half of its bytes. A read does not fail, but returns the
  // first half of the bytes, as if the file ended there.
  bool partial = false;
  bool flip = false;  // a read succeeds, but one bit of its last byte that is not 0 is flipped
};

class MemoryBacking final : public metadata::BackingDirectory {
 public:
  static std::shared_ptr<MemoryBacking> create();
  ~MemoryBacking() override;

  // --- Losing power. Snapshots are directories of their own, with everything in them durable, no
  // failures set and the change count at 0; this one and its open files stay as they are.

  // The directory as it may be found after a power loss at this moment. Equal seeds and states give
  // equal results. Seed 0 loses all that may be lost, seed 1 keeps all of it, any other one chooses
  // at random.
  std::shared_ptr<MemoryBacking> power_loss(std::uint64_t seed) const;
  // The directory as it is found after only the process was killed: nothing is lost.
  std::shared_ptr<MemoryBacking> process_kill() const;

  // --- Failing.

  // Changes begun so far, failed ones included.
  std::uint64_t change_count() const;
  // How often these operations were called, reads included.
  std::uint64_t operation_count(std::uint32_t operations) const;
  // From change number on, every operation fails with io, reads too. The change of that very number
  // was under way. It fails as well, but power_loss() may keep it like an unsynced change, wholly
  // or in part.
  void fail_at(std::uint64_t number);
  // From now on every operation fails. So threads that are left of a killed process cannot write.
  void stop();
  void inject(InjectedFailure failure);
  void clear_failures();  // those of fail_at(), stop() and inject()
  // Every change fails with read_only, as on a medium that is mounted so.
  void set_read_only(bool read_only);
  // Called before each read and each change of a file or folder, on the calling thread and under no
  // lock. The operation waits for it, so it can stand for a slow disk. An empty function removes
  // it.
  using Watcher = std::function<void(std::uint32_t operation, std::string_view path)>;
  void watch(Watcher watcher);
  // The most bytes that all files may take together (the sum of their sizes). Beyond that writes
  // fail with no_space.
  void set_capacity(std::uint64_t bytes);
  // The same as a quota, which space() does not show.
  void set_quota(std::uint64_t bytes);
  // Files that are open now.
  std::uint64_t open_file_count() const;

  // --- Changes by an attacker or by the test itself. They are durable at once, and with them
  // earlier changes of the same folder. They are not numbered and never fail.

  std::vector<std::string> files() const;  // paths of all files, sorted
  std::optional<Bytes> load(std::string_view path) const;
  // Makes or replaces a file and, where it lies in one, its folder.
  void store(std::string_view path, ByteView content);
  void erase(std::string_view path);
  // From now on the 512 bytes at offset cannot be read (io), under any name of the file. Snapshots
  // of the directory have no bad block.
  void set_bad_block(std::string_view path, std::uint64_t offset);

  // --- BackingDirectory. Paths as in metadata/backing/path.h.

  Result<std::unique_ptr<metadata::BackingFile>> open(std::string_view path,
                                                      metadata::OpenMode mode) override;
  Result<void> remove(std::string_view path) override;
  Result<void> rename(std::string_view from, std::string_view to) override;
  Result<void> make_directory(std::string_view path) override;
  Result<bool> exists(std::string_view path) override;
  Result<std::uint64_t> file_size(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view folder) override;
  Result<void> sync_directory(std::string_view folder) override;
  Result<metadata::BackingSpace> space() override;
  std::string description() const override { return "(memory)"; }

  struct State;

 private:
  explicit MemoryBacking(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;  // shared with open files
};

}  // namespace nacre::tests
