// SPDX-License-Identifier: Apache-2.0
// The volume's tables: RocksDB on the sealed file system, under two in-memory layers.
//
// Changes go to the open group, an ordered overlay that each read looks at first. freeze() turns it
// into the frozen group, which reads still look at, and opens a new one. commit_frozen() writes the
// frozen group as one WriteBatch with one sync of the log, and drops it. So a transaction group
// becomes durable as a whole or not at all, and other operations do not wait for the disk. A row
// that is put as new and erased within the same group never reaches the disk.
//
// Thread-safe. The caller decides what belongs to a group: freeze() must not come between the
// changes of one operation. fs/store/committer holds the lock for that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/tables/database_snapshot.h"

namespace nacre::metadata {

// The table inlined holds the bytes of small synchronous writes until they move to a segment.
enum class Table : std::uint8_t {
  inodes,
  dentries,
  chunks,
  inlined,
  xattrs,
  segments,
  orphans,
  system
};
inline constexpr std::size_t table_count = 8;
std::string_view to_string(Table table);

struct DatabaseOptions {
  bool create = false;  // makes a new database; otherwise it must exist
  // Writes nothing, not even for recovery, so it works on a read-only medium.
  bool read_only = false;
  std::uint64_t block_cache_bytes = 32u << 20;
  std::uint64_t write_buffer_bytes = 16u << 20;
  std::uint64_t manifest_bytes_max = 4u << 20;  // a larger manifest is replaced by a new one
  // The volume's padding, for files that are made in epochs of format 2. Existing files tell by
  // themselves whether they are padded.
  engine::Padding padding = engine::Padding::none;
};

struct DatabaseStats {
  std::uint64_t row_reads = 0;
  std::uint64_t open_group_rows = 0;
  std::uint64_t commit_count = 0;
  std::uint64_t wal_bytes = 0;
  std::uint64_t table_file_bytes = 0;
  std::uint64_t held_bytes = 0;  // bytes of files that are kept only for a snapshot
};

// All committed rows at one moment, independent of later commits. Thread-safe. It may not outlive
// its database. While it exists, the old values of rows that later commits replace stay on the
// disk.
class CommittedView {
 public:
  virtual ~CommittedView() = default;
  // Visits all rows of a table in order. An error of visit ends the scan and is returned. Does not
  // change the block cache.
  virtual Result<void> scan(
      Table table,
      const std::function<Result<void>(std::string_view key, std::string_view value)>& visit)
      const = 0;
};

class Database {
 public:
  // Errors: corrupt (a bad page or frame), tampered, missing (a file that the manifest names),
  // wrong_key, io, no_space, read_only.
  static Result<std::unique_ptr<Database>> open(std::shared_ptr<BackingDirectory> directory,
                                                std::shared_ptr<const KeyTree> keys,
                                                const DatabaseOptions& options);
  // Without close() before it, the database is left as after a crash.
  virtual ~Database() = default;

  virtual Result<std::optional<std::string>> get(Table table, std::string_view key) const = 0;
  // Returns the same as get() for each key, in their order, but reads neighbouring rows together.
  // keys ascend, and no two are equal. A row that cannot be read does not fail the others.
  virtual std::vector<Result<std::optional<std::string>>> get_many(
      Table table, std::span<const std::string> keys) const = 0;
  // Calls visit for the rows with from <= key < to, in order, until it returns false. If to is
  // empty, there is no end. visit must not call this object.
  virtual Result<void> scan(
      Table table, std::string_view from, std::string_view to,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;
  // The last row with from <= key <= at, if there is one.
  struct Row {
    std::string key, value;
  };
  virtual Result<std::optional<Row>> find_last(Table table, std::string_view from,
                                               std::string_view at) const = 0;

  virtual void put(Table table, std::string_view key, std::string value) = 0;
  // The same for a row that get() has just not found. If it is erased again before freeze(),
  // nothing is written for it. (If a group has the key already, as a row that was put or erased,
  // the erasure is written.)
  virtual void put_new(Table table, std::string_view key, std::string value) = 0;
  virtual void erase(Table table, std::string_view key) = 0;
  // Writes rows at once, without the groups: they are durable when it returns, and rows in the
  // groups are still not. For rows that must be durable before other rows name them. No group may
  // have these rows.
  virtual Result<void> put_now(Table table, const std::vector<Row>& rows) = 0;

  // Returns false if there is nothing to commit; then nothing is frozen. May be called only while
  // no group is frozen.
  virtual bool freeze() = 0;
  // Writes the frozen group. On success it is in the database, durable if sync is set, and no
  // longer frozen. After an error it stays frozen and readable; after no_space it may be committed
  // again.
  virtual Result<void> commit_frozen(bool sync) = 0;

  // Flushes memtables and leaves the WAL empty. Open and frozen groups must have been committed.
  virtual Result<void> close() = 0;
  virtual DatabaseStats stats() const = 0;

  // The number of durable changes of rows since the database was made. open() takes it from what
  // the files hold; with read_only part of that need not be durable. The number decreases only if
  // changes are lost or the database is made anew. May be called after close().
  virtual std::uint64_t durable_change_count() const = 0;

  // Writes all committed rows to tables and keeps the files that have them. Rows in the groups are
  // not part of it. Waits for commits and lets none begin. Errors: no_space; read_only.
  virtual Result<DatabaseSnapshot> snapshot() = 0;

  // A view of everything that has been committed. Rows in the groups are not part of it. Does not
  // wait.
  virtual std::unique_ptr<CommittedView> committed_view() const = 0;

  // Prepares a switch to the epoch of the keys next: makes copies of tables, sealed under that
  // epoch, so that switch_epoch() has little left to do. The copies do not count until then.
  // Nothing waits for this call. go_on is asked between two tables; its error ends the call.
  // Errors: also no_space, io.
  virtual Result<void> prepare_switch(const KeyTree& next,
                                      const std::function<Result<void>()>& go_on) = 0;
  // Removes what prepare_switch() made, if no switch follows. Errors: io. If switch_epoch() failed
  // in its last step, its keys may be in force and need these files: then nothing is removed, and
  // the error of switch_epoch() is returned again.
  virtual Result<void> abandon_switch() = 0;

  // Begins a rotation of keys to an epoch of format 2, whose keys next has. First every file of the
  // database is sealed anew under that epoch. Then commit makes next's keys durable, and makes them
  // the current keys of this database. From then on no file of the database counts that is sealed
  // under older keys. Commits wait meanwhile, reads go on. Errors: busy while a snapshot is held;
  // no_space; those of commit. After an error of commit, or a later one, nothing can be written
  // until the database is opened anew.
  virtual Result<void> switch_epoch(const KeyTree& next,
                                    const std::function<Result<void>()>& commit) = 0;

  // For a rotation of keys: seals every file of an older epoch anew under the current epoch. Rows
  // in the groups need no such work, since their commit seals them under the current epoch. Commits
  // and reads wait for moments only. go_on is asked between two tables. Its error ends the call,
  // which may be repeated at any time. Returns the paths of files that are still of an older epoch.
  // They are no longer used and will soon be removed, except for those that a snapshot holds.
  // Errors: those of go_on, corrupt, tampered, no_space, io, read_only.
  virtual Result<std::vector<std::string>> reseal(const std::function<Result<void>()>& go_on) = 0;

  // The names within db/ of the files that the database needs now: CURRENT, IDENTITY, the manifest
  // and tables in use, the newest OPTIONS, and all logs. A log is needed even if it is empty,
  // because a witness may name it. Other files were left by an unclean stop, or are for people
  // only. Works with read_only. Error: io.
  virtual Result<std::set<std::string>> needed_files() const = 0;
};

// The epoch under which a file in db/ is sealed; no key is needed. Empty if it has no header yet.
Result<std::optional<std::uint32_t>> database_file_epoch(BackingDirectory& directory,
                                                         const std::string& path);

}  // namespace nacre::metadata
