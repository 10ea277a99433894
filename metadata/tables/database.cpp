// SPDX-License-Identifier: Apache-2.0
// Database: the open and the frozen group over RocksDB.
//
// One shared lock covers both groups. It is never held while RocksDB reads or writes. A commit
// writes the frozen group first and drops it afterwards, so a reader that does not find a row in
// the groups finds it in RocksDB. An iterator shows RocksDB at the time of its creation. It is made
// under the lock, and made anew once a commit has dropped a group, so no row is missed between the
// two.
#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <span>
#include <vector>

#include "gpu_engine/base/check.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/sealed_fs/status.h"
#include "metadata/tables/overlay.h"
#include "metadata/tables/rocksdb_store.h"

namespace nacre::metadata {
namespace {

rocksdb::Slice slice_of(std::string_view text) {
  return {text.data(), text.size()};
}

// The row of a key in both groups together.
struct GroupRow {
  std::string key;
  std::optional<std::string> value;  // none: erased
};

class DatabaseImpl final : public Database {
 public:
  explicit DatabaseImpl(std::unique_ptr<RocksdbStore> store, bool read_only)
      : store_(std::move(store)),
        read_only_(read_only),
        durable_change_count_(store_->last_sequence()) {}

  Result<std::optional<std::string>> get(Table table, std::string_view key) const override;
  std::vector<Result<std::optional<std::string>>> get_many(
      Table table, std::span<const std::string> keys) const override;
  Result<void> scan(
      Table table, std::string_view from, std::string_view to,
      const std::function<bool(std::string_view, std::string_view)>& visit) const override;
  Result<std::optional<Row>> find_last(Table table, std::string_view from,
                                       std::string_view at) const override;
  void put(Table table, std::string_view key, std::string value) override;
  void put_new(Table table, std::string_view key, std::string value) override;
  void erase(Table table, std::string_view key) override;
  bool freeze() override;
  Result<void> put_now(Table table, const std::vector<Row>& rows) override;
  Result<void> commit_frozen(bool sync) override;
  Result<void> close() override;
  DatabaseStats stats() const override;
  Result<DatabaseSnapshot> snapshot() override;
  std::unique_ptr<CommittedView> committed_view() const override {
    return store_->committed_view();
  }
  Result<void> prepare_switch(const KeyTree& next,
                              const std::function<Result<void>()>& go_on) override {
    if (read_only_) return fail(ErrorCode::read_only, "the database is open for reading only");
    return store_->prepare_switch(next, go_on);
  }
  Result<void> abandon_switch() override { return store_->abandon_switch(); }
  Result<void> switch_epoch(const KeyTree& next,
                            const std::function<Result<void>()>& commit) override;
  Result<std::vector<std::string>> reseal(const std::function<Result<void>()>& go_on) override;
  Result<std::set<std::string>> needed_files() const override { return store_->needed_files(); }
  std::uint64_t durable_change_count() const override { return durable_change_count_; }

 private:
  friend class Scan;
  const Overlay::Entry* find_in_groups(Table table, std::string_view key) const
      NACRE_REQUIRES_SHARED(mutex_);
  std::vector<GroupRow> copy_groups(Table table, std::string_view from, std::string_view to,
                                    std::size_t count_max) const NACRE_REQUIRES_SHARED(mutex_);
  std::optional<Row> find_last_in_groups(Table table, std::string_view from,
                                         std::string_view at) const NACRE_REQUIRES_SHARED(mutex_);

  std::unique_ptr<RocksdbStore> store_;
  const bool read_only_;
  mutable SharedMutex mutex_;
  std::unique_ptr<Overlay> open_ NACRE_GUARDED_BY(mutex_) = std::make_unique<Overlay>();
  std::unique_ptr<Overlay> frozen_ NACRE_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> commit_count_{0};       // changes under mutex_
  std::atomic<std::uint64_t> durable_change_count_;  // changes under commit_mutex_
  mutable std::atomic<std::uint64_t> row_reads_{0};
  Mutex commit_mutex_;  // before mutex_
};

const Overlay::Entry* DatabaseImpl::find_in_groups(Table table, std::string_view key) const {
  if (const auto* entry = open_->find(table, key)) return entry;
  return frozen_ == nullptr ? nullptr : frozen_->find(table, key);
}

Result<std::optional<std::string>> DatabaseImpl::get(Table table, std::string_view key) const {
  {
    SharedLock lock(mutex_);
    if (const auto* entry = find_in_groups(table, key)) return entry->value;
  }
  row_reads_.fetch_add(1, std::memory_order_relaxed);
  return store_->get(table, key);
}

std::vector<Result<std::optional<std::string>>> DatabaseImpl::get_many(
    Table table, std::span<const std::string> keys) const {
  std::vector<Result<std::optional<std::string>>> rows(keys.size());
  std::vector<std::size_t> below;  // indexes of keys that no group has
  std::vector<rocksdb::Slice> below_keys;
  {
    SharedLock lock(mutex_);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (const auto* entry = find_in_groups(table, keys[i])) {
        rows[i] = entry->value;
      } else {
        below.push_back(i);
        below_keys.push_back(slice_of(keys[i]));
      }
    }
  }
  if (below.empty()) return rows;
  row_reads_.fetch_add(below.size(), std::memory_order_relaxed);
  auto found = store_->get_many(table, below_keys);
  for (std::size_t i = 0; i < below.size(); ++i)
    rows[below[i]] = std::move(found[i]);
  return rows;
}

// The first count_max rows of both groups in [from, to). If both have a key, the open group's row
// counts.
std::vector<GroupRow> DatabaseImpl::copy_groups(Table table, std::string_view from,
                                                std::string_view to, std::size_t count_max) const {
  static const Overlay::Rows none;
  const Overlay::Rows& open = open_->rows(table);
  const Overlay::Rows& frozen = frozen_ == nullptr ? none : frozen_->rows(table);
  auto a = open.lower_bound(from);
  auto b = frozen.lower_bound(from);
  const auto a_end = to.empty() ? open.end() : open.lower_bound(to);
  const auto b_end = to.empty() ? frozen.end() : frozen.lower_bound(to);
  std::vector<GroupRow> rows;
  while (rows.size() < count_max && (a != a_end || b != b_end)) {
    const bool take_a = b == b_end || (a != a_end && a->first <= b->first);
    const auto& row = take_a ? *a : *b;
    rows.push_back({row.first, row.second.value});
    if (b != b_end && b->first == row.first) ++b;
    if (take_a) ++a;
  }
  return rows;
}

// One scan. It copies pieces of the groups under the lock, and merges them with RocksDB's rows
// without the lock.
class Scan {
 public:
  Scan(const DatabaseImpl& database, Table table, std::string_view from, std::string_view to)
      : database_(database), table_(table), cursor_(from), to_(to), to_slice_(slice_of(to_)) {}

  using Visit = std::function<bool(std::string_view, std::string_view)>;

  Result<void> run(const Visit& visit) {
    for (std::size_t piece = first_piece_rows;; piece = std::min(piece * 4, piece_rows_max)) {
      load(piece);
      // The piece ends with the last row that was copied, or at the end if the groups have no more.
      const bool is_last = group_rows_.size() < piece;
      const std::string end = is_last ? std::string() : group_rows_.back().key;
      if (!merge(is_last, end, visit)) break;
      if (!below_->status().ok()) break;
      if (is_last) break;
      cursor_ = end;
      cursor_.push_back('\0');
    }
    if (below_->status().ok()) return {};
    return tl::unexpected<Error>(
        to_error(below_->status(), fmt::format("reading {}", to_string(table_))));
  }

 private:
  static constexpr std::size_t first_piece_rows = 32;
  static constexpr std::size_t piece_rows_max = 2048;

  void load(std::size_t count_max) {
    SharedLock lock(database_.mutex_);
    group_rows_ = database_.copy_groups(table_, cursor_, to_, count_max);
    if (below_ != nullptr && commit_count_ == database_.commit_count_) return;
    commit_count_ = database_.commit_count_;
    below_ = database_.store_->iterate(table_, nullptr, to_.empty() ? nullptr : &to_slice_);
    needs_seek_ = true;
  }

  // Returns false if visit ended the scan.
  bool merge(bool is_last, std::string_view end, const Visit& visit) {
    if (needs_seek_) below_->Seek(slice_of(cursor_));
    needs_seek_ = false;
    auto group = group_rows_.begin();
    for (;;) {
      const bool has_below = below_->Valid() && (is_last || below_->key().ToStringView() <= end);
      if (!has_below && group == group_rows_.end()) return true;
      const int order = !has_below ? -1
                        : group == group_rows_.end()
                            ? 1
                            : std::string_view(group->key).compare(below_->key().ToStringView());
      if (order > 0) {
        row_reads_++;
        if (!visit(below_->key().ToStringView(), below_->value().ToStringView())) return false;
        below_->Next();
        continue;
      }
      if (group->value && !visit(group->key, *group->value)) return false;
      ++group;
      if (order == 0) below_->Next();
    }
  }

  const DatabaseImpl& database_;
  const Table table_;
  std::string cursor_;  // the next key to visit
  const std::string to_;
  const rocksdb::Slice to_slice_;
  std::vector<GroupRow> group_rows_;
  std::unique_ptr<rocksdb::Iterator> below_;
  std::uint64_t commit_count_ = 0;  // the commit count when below_ was made
  bool needs_seek_ = false;

 public:
  std::uint64_t row_reads_ = 0;
};

Result<void> DatabaseImpl::scan(
    Table table, std::string_view from, std::string_view to,
    const std::function<bool(std::string_view, std::string_view)>& visit) const {
  if (!to.empty() && from >= to) return {};
  Scan scan(*this, table, from, to);
  auto result = scan.run(visit);
  row_reads_.fetch_add(scan.row_reads_, std::memory_order_relaxed);
  return result;
}

// The last row of both groups in [from, at] that is not erased.
std::optional<Database::Row> DatabaseImpl::find_last_in_groups(Table table, std::string_view from,
                                                               std::string_view at) const {
  static const Overlay::Rows none;
  const Overlay::Rows& open = open_->rows(table);
  const Overlay::Rows& frozen = frozen_ == nullptr ? none : frozen_->rows(table);
  auto a = open.upper_bound(at);
  auto b = frozen.upper_bound(at);
  for (;;) {
    const bool has_a = a != open.begin() && std::prev(a)->first >= from;
    const bool has_b = b != frozen.begin() && std::prev(b)->first >= from;
    if (!has_a && !has_b) return std::nullopt;
    const bool take_a = !has_b || (has_a && std::prev(a)->first >= std::prev(b)->first);
    const auto& row = take_a ? *std::prev(a) : *std::prev(b);
    if (row.second.value) return Row{row.first, *row.second.value};
    if (has_b && std::prev(b)->first == row.first) --b;
    if (take_a) --a;
  }
}

Result<std::optional<Database::Row>> DatabaseImpl::find_last(Table table, std::string_view from,
                                                             std::string_view at) const {
  if (from > at) return std::optional<Row>();
  const rocksdb::Slice lower = slice_of(from);
  for (;;) {
    std::unique_ptr<rocksdb::Iterator> below;
    std::optional<Row> above;
    std::uint64_t commit_count = 0;
    {
      SharedLock lock(mutex_);
      above = find_last_in_groups(table, from, at);
      if (above && above->key == at) return above;
      commit_count = commit_count_;
      below = store_->iterate(table, &lower, nullptr);
    }
    row_reads_.fetch_add(1, std::memory_order_relaxed);
    bool stale = false;
    for (below->SeekForPrev(slice_of(at)); below->Valid(); below->Prev()) {
      const std::string_view key = below->key().ToStringView();
      if (above && key <= above->key) return above;
      SharedLock lock(mutex_);
      stale = commit_count != commit_count_;
      if (stale) break;
      // A live entry in a group was put in the meantime. The result is the same as if this call had
      // come before it.
      const auto* entry = find_in_groups(table, key);
      if (entry != nullptr && !entry->value) continue;
      return Row{std::string(key), below->value().ToString()};
    }
    if (stale) continue;
    if (!below->status().ok()) {
      return tl::unexpected<Error>(
          to_error(below->status(), fmt::format("reading {}", to_string(table))));
    }
    return above;
  }
}

void DatabaseImpl::put(Table table, std::string_view key, std::string value) {
  UniqueLock lock(mutex_);
  open_->put(table, key, std::move(value), false);
}

void DatabaseImpl::put_new(Table table, std::string_view key, std::string value) {
  UniqueLock lock(mutex_);
  const bool frozen_knows = frozen_ != nullptr && frozen_->find(table, key) != nullptr;
  open_->put(table, key, std::move(value), !frozen_knows);
}

void DatabaseImpl::erase(Table table, std::string_view key) {
  UniqueLock lock(mutex_);
  open_->erase(table, key);
}

bool DatabaseImpl::freeze() {
  UniqueLock lock(mutex_);
  if (frozen_ != nullptr) return true;  // the frozen group must be committed first
  if (open_->empty()) return false;
  frozen_ = std::move(open_);
  open_ = std::make_unique<Overlay>();
  return true;
}

Result<void> DatabaseImpl::put_now(Table table, const std::vector<Row>& rows) {
  if (read_only_) return fail(ErrorCode::read_only, "the volume is open for reading only");
  LockGuard commit_lock(commit_mutex_);
  rocksdb::WriteBatch batch;
  for (const Row& row : rows)
    batch.Put(store_->family(table), row.key, row.value);
  NACRE_TRY(store_->write(batch, true, RocksdbStore::Retry::never));
  durable_change_count_ = store_->last_sequence();
  return {};
}

Result<void> DatabaseImpl::commit_frozen(bool sync) {
  LockGuard commit_lock(commit_mutex_);
  const Overlay* group = nullptr;
  {
    SharedLock lock(mutex_);
    group = frozen_.get();  // no other thread drops it, and it never changes
  }
  if (group == nullptr) return {};
  if (read_only_) return fail(ErrorCode::read_only, "the volume is open for reading only");
  rocksdb::WriteBatch batch;
  for (std::size_t table = 0; table < table_count; table++) {
    rocksdb::ColumnFamilyHandle* family = store_->family(static_cast<Table>(table));
    for (const auto& [key, entry] : group->rows(static_cast<Table>(table))) {
      if (entry.value) {
        batch.Put(family, key, *entry.value);
      } else {
        batch.Delete(family, key);
      }
    }
  }
  NACRE_TRY(store_->write(batch, sync, RocksdbStore::Retry::same_batch));
  if (sync) durable_change_count_ = store_->last_sequence();
  std::unique_ptr<Overlay> done;  // freed after the lock is released
  UniqueLock lock(mutex_);
  NACRE_CHECK(frozen_.get() == group, "the group of {} rows was replaced while it was written",
              group->row_count());
  done = std::move(frozen_);
  commit_count_++;
  lock.unlock();
  return {};
}

Result<void> DatabaseImpl::close() {
  LockGuard commit_lock(commit_mutex_);
  {
    SharedLock lock(mutex_);
    if (frozen_ != nullptr || !open_->empty()) {
      return fail(ErrorCode::invalid_argument,
                  "the database cannot be closed while changes wait for a commit");
    }
  }
  if (!read_only_) NACRE_TRY(store_->flush());
  return store_->close();
}

Result<DatabaseSnapshot> DatabaseImpl::snapshot() {
  LockGuard commit_lock(commit_mutex_);
  if (read_only_) return fail(ErrorCode::read_only, "the volume is open for reading only");
  return store_->snapshot();
}

Result<void> DatabaseImpl::switch_epoch(const KeyTree& next,
                                        const std::function<Result<void>()>& commit) {
  if (read_only_) return fail(ErrorCode::read_only, "the volume is open for reading only");
  LockGuard commit_lock(commit_mutex_);
  return store_->switch_epoch(next, commit);
}

Result<std::vector<std::string>> DatabaseImpl::reseal(const std::function<Result<void>()>& go_on) {
  if (read_only_) return fail(ErrorCode::read_only, "the volume is open for reading only");
  {
    LockGuard commit_lock(commit_mutex_);
    NACRE_TRY(store_->begin_reseal());
  }
  return store_->finish_reseal(go_on);
}

DatabaseStats DatabaseImpl::stats() const {
  DatabaseStats stats;
  stats.row_reads = row_reads_;
  stats.commit_count = commit_count_;
  {
    SharedLock lock(mutex_);
    stats.open_group_rows = open_->row_count();
  }
  stats.wal_bytes = store_->log_bytes();
  stats.table_file_bytes = store_->table_file_bytes();
  stats.held_bytes = store_->held_bytes();
  return stats;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(std::shared_ptr<BackingDirectory> directory,
                                                 std::shared_ptr<const KeyTree> keys,
                                                 const DatabaseOptions& options) {
  NACRE_ASSIGN(auto store, RocksdbStore::open(std::move(directory), std::move(keys), options));
  return std::make_unique<DatabaseImpl>(std::move(store), options.read_only);
}

}  // namespace nacre::metadata
