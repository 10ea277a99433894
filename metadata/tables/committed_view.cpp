// SPDX-License-Identifier: Apache-2.0
// RocksdbStore::committed_view(): a RocksDB snapshot, up to which RocksDB keeps all rows.
#include <rocksdb/snapshot.h>

#include <fmt/format.h>

#include "metadata/sealed_fs/status.h"
#include "metadata/tables/rocksdb_store.h"

namespace nacre::metadata {
namespace {

// A view is read from end to end, so read-ahead pays.
constexpr std::size_t read_ahead_bytes = 1u << 20;

class RocksdbView final : public CommittedView {
 public:
  RocksdbView(const RocksdbStore& store, rocksdb::DB& db)
      : store_(store), db_(db), snapshot_(std::make_unique<rocksdb::ManagedSnapshot>(&db)) {}

  Result<void> scan(
      Table table,
      const std::function<Result<void>(std::string_view, std::string_view)>& visit) const override {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_->snapshot();
    options.fill_cache = false;
    options.readahead_size = read_ahead_bytes;
    const std::unique_ptr<rocksdb::Iterator> rows(db_.NewIterator(options, store_.family(table)));
    for (rows->SeekToFirst(); rows->Valid(); rows->Next())
      NACRE_TRY(visit(rows->key().ToStringView(), rows->value().ToStringView()));
    if (rows->status().ok()) return {};
    return tl::unexpected<Error>(
        to_error(rows->status(), fmt::format("reading {}", to_string(table))));
  }

 private:
  const RocksdbStore& store_;
  rocksdb::DB& db_;
  const std::unique_ptr<rocksdb::ManagedSnapshot> snapshot_;
};

}  // namespace

std::unique_ptr<CommittedView> RocksdbStore::committed_view() const {
  return std::make_unique<RocksdbView>(*this, *db_);
}

}  // namespace nacre::metadata
