// SPDX-License-Identifier: Apache-2.0
// The volume's tables: RocksDB on the sealed file system, under two in-memory layers.
//
// Changes go to the open group, an ordered overlay that every read consults first. freeze() turns
// it into the frozen group (still consulted) and opens a new one; commit_frozen() writes the frozen
// group as one WriteBatch with one WAL sync and drops it. So a transaction group becomes durable as
// a whole or not at all, and nobody waits for the disk while it does. A row that was put as new and
// is erased within the same group never reaches the disk.
//
// Thread-safe. The caller decides what belongs to one group: an operation that changes several rows
// must not be cut by freeze() (fs/store/committer holds that lock).
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

// inlined holds the bytes of small synchronous writes until they move to a segment.
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
  bool create = false;     // a new database; else it must exist
  bool read_only = false;  // nothing is written, not even recovery: works on a read-only medium
  std::uint64_t block_cache_bytes = 32u << 20;
  std::uint64_t write_buffer_bytes = 16u << 20;
  std::uint64_t manifest_bytes_max = 4u << 20;  // then another is begun
};

struct DatabaseStats {
  std::uint64_t row_reads = 0;
  std::uint64_t open_group_rows = 0;
  std::uint64_t commit_count = 0;
  std::uint64_t wal_bytes = 0;
  std::uint64_t table_file_bytes = 0;
  std::uint64_t held_bytes = 0;  // of files that are there only because a snapshot needs them
};

// All committed rows as of one moment, whatever is committed later. Thread-safe. It may not outlive
// its database; as long as it lives the disk keeps what has been replaced since.
class CommittedView {
 public:
  virtual ~CommittedView() = default;
  // All rows of a table in order, until visit gives an error: that is returned. Leaves the block
  // cache as it is.
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
  virtual ~Database() = default;  // without close(): as after a crash

  virtual Result<std::optional<std::string>> get(Table table, std::string_view key) const = 0;
  // As good as get() of each key, in their order, but rows that lie near each other are read
  // together. keys ascend, no two are equal. One that cannot be read does not fail the others.
  virtual std::vector<Result<std::optional<std::string>>> get_many(
      Table table, std::span<const std::string> keys) const = 0;
  // Calls visit for the rows with from <= key < to (to empty: no end) in order until it returns
  // false. visit must not call this object.
  virtual Result<void> scan(
      Table table, std::string_view from, std::string_view to,
      const std::function<bool(std::string_view key, std::string_view value)>& visit) const = 0;
  // The last row with from <= key <= at; none when there is none.
  struct Row {
    std::string key, value;
  };
  virtual Result<std::optional<Row>> find_last(Table table, std::string_view from,
                                               std::string_view at) const = 0;

  virtual void put(Table table, std::string_view key, std::string value) = 0;
  // The same for a row that get() just did not find. When neither the open group (a row erased
  // earlier) nor the frozen group knows the key, the row is new: erasing it again within this group
  // then leaves nothing to write.
  virtual void put_new(Table table, std::string_view key, std::string value) = 0;
  virtual void erase(Table table, std::string_view key) = 0;
  // Writes rows past the groups: all of them durable when it returns, while what is in the groups
  // is not. For rows that no group holds and that others may name from then on.
  virtual Result<void> put_now(Table table, const std::vector<Row>& rows) = 0;

  // False when there is nothing to commit (then nothing is frozen). Only while none is frozen.
  virtual bool freeze() = 0;
  // Writes the frozen group; on success it is in the database and durable (sync) and no longer
  // frozen. On an error it stays frozen and readable, and may be committed again after no_space.
  virtual Result<void> commit_frozen(bool sync) = 0;

  // Flushes memtables and leaves the WAL empty. Open and frozen groups must have been committed.
  virtual Result<void> close() = 0;
  virtual DatabaseStats stats() const = 0;

  // How many changes of rows are durable, counted since the database was made; after an opening
  // those that it found (of one that is read_only they need not be durable). Goes down only where
  // changes are lost or the database is made anew. Also after close().
  virtual std::uint64_t durable_change_count() const = 0;

  // Puts all committed rows into tables and holds the files that have them. What the groups hold is
  // not part of it. Waits for commits and lets none begin. no_space; read_only.
  virtual Result<DatabaseSnapshot> snapshot() = 0;

  // What has been committed until now; the groups are not part of it. Holds nobody up.
  virtual std::unique_ptr<CommittedView> committed_view() const = 0;

  // The beginning of a rotation of keys to an epoch of format 2, which next has: every file of the
  // database is sealed anew under it; then commit makes next's keys durable, and the current ones
  // of this database's; from then on nothing sealed under the older ones counts. Commits wait,
  // reads go on. busy while a snapshot is held; no_space; errors of commit. After an error of
  // commit or behind it nothing can be written until the database is opened anew.
  virtual Result<void> switch_epoch(const KeyTree& next,
                                    const std::function<Result<void>()>& commit) = 0;

  // For a rotation of keys: seals every file of the database anew under the current epoch, where it
  // is of an older one. Rows of the groups are no part of it: once committed they are sealed under
  // the current epoch anyway. Commits and reads go on but for moments. go_on is asked between two
  // tables; its error ends the work, which may be taken up again at any time.
  // Returns the paths of files that are still of an older epoch: of no use any more, and gone soon,
  // but for what a snapshot holds. Errors: go_on's, corrupt, tampered, no_space, io, read_only.
  virtual Result<std::vector<std::string>> reseal(const std::function<Result<void>()>& go_on) = 0;

  // The names within db/ of the files that the database depends on now: CURRENT, IDENTITY, the
  // manifest and tables in use, the newest OPTIONS, and every log (of which the witnesses know).
  // Whatever else lies there an unclean stop has left, or says something for people only.
  // Also when read-only. Errors: io.
  virtual Result<std::set<std::string>> needed_files() const = 0;
};

// The epoch under which a file under db/ is sealed, without keys; none when it has no header (yet).
Result<std::optional<std::uint32_t>> database_file_epoch(BackingDirectory& directory,
                                                         const std::string& path);

}  // namespace nacre::metadata
