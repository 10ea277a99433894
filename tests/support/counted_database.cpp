// SPDX-License-Identifier: Apache-2.0
#include "tests/support/counted_database.h"

namespace nacre::tests {

using metadata::Table;

Result<std::optional<std::string>> CountedDatabase::get(Table table, std::string_view key) const {
  ++counters_->gets;
  return below_->get(table, key);
}

std::vector<Result<std::optional<std::string>>> CountedDatabase::get_many(
    Table table, std::span<const std::string> keys) const {
  if (!keys.empty()) ++counters_->many_gets;
  return below_->get_many(table, keys);
}

Result<void> CountedDatabase::scan(
    Table table, std::string_view from, std::string_view to,
    const std::function<bool(std::string_view, std::string_view)>& visit) const {
  ++counters_->iterators;
  if (table != Table::chunks) return below_->scan(table, from, to, visit);
  std::string end(to);
  auto outcome = below_->scan(table, from, to, [&](std::string_view key, std::string_view value) {
    const bool goes_on = visit(key, value);
    if (!goes_on) end = key;
    return goes_on;
  });
  count_passed(from, end);
  return outcome;
}

void CountedDatabase::count_passed(std::string_view from, std::string_view to) const {
  const std::lock_guard lock(erased_mutex_);
  auto key = erased_chunks_.lower_bound(from);
  for (; key != erased_chunks_.end() && (to.empty() || *key < to); ++key)
    ++counters_->erased_chunks_passed;
}

void CountedDatabase::note_put(Table table, std::string_view key) {
  if (table != Table::chunks) return;
  const std::lock_guard lock(erased_mutex_);
  if (const auto found = erased_chunks_.find(key); found != erased_chunks_.end())
    erased_chunks_.erase(found);
}

Result<std::optional<metadata::Database::Row>> CountedDatabase::find_last(
    Table table, std::string_view from, std::string_view at) const {
  ++counters_->iterators;
  auto found = below_->find_last(table, from, at);
  if (table == Table::chunks) count_passed(found && *found ? (*found)->key : from, at);
  return found;
}

void CountedDatabase::put(Table table, std::string_view key, std::string value) {
  ++counters_->puts;
  note_put(table, key);
  below_->put(table, key, std::move(value));
}

void CountedDatabase::put_new(Table table, std::string_view key, std::string value) {
  ++counters_->puts;
  note_put(table, key);
  below_->put_new(table, key, std::move(value));
}

void CountedDatabase::erase(Table table, std::string_view key) {
  ++counters_->erases;
  if (table == Table::chunks) {
    const std::lock_guard lock(erased_mutex_);
    erased_chunks_.emplace(key);
  }
  below_->erase(table, key);
}

Result<void> CountedDatabase::put_now(Table table, const std::vector<Row>& rows) {
  ++counters_->batches;
  counters_->batch_rows += rows.size();
  return below_->put_now(table, rows);
}

bool CountedDatabase::freeze() {
  const std::uint64_t rows = below_->stats().open_group_rows;
  const bool frozen = below_->freeze();
  if (frozen) frozen_rows_ = rows;
  return frozen;
}

Result<void> CountedDatabase::commit_frozen(bool sync) {
  ++counters_->batches;
  counters_->batch_rows += frozen_rows_.exchange(0);
  return below_->commit_frozen(sync);
}

}  // namespace nacre::tests
