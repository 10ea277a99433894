// SPDX-License-Identifier: Apache-2.0
// A Database that counts what is asked of the one below it.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "metadata/tables/database.h"
#include "tests/support/operation_counts.h"

namespace nacre::tests {

// Thread-safe, as what is below it.
class CountedDatabase final : public metadata::Database {
 public:
  CountedDatabase(std::unique_ptr<metadata::Database> below,
                  std::shared_ptr<TableCounters> counters)
      : below_(std::move(below)), counters_(std::move(counters)) {}

  Result<std::optional<std::string>> get(metadata::Table table,
                                         std::string_view key) const override;
  std::vector<Result<std::optional<std::string>>> get_many(
      metadata::Table table, std::span<const std::string> keys) const override;
  Result<void> scan(metadata::Table table, std::string_view from, std::string_view to,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;
  Result<std::optional<Row>> find_last(metadata::Table table, std::string_view from,
                                       std::string_view at) const override;
  void put(metadata::Table table, std::string_view key, std::string value) override;
  void put_new(metadata::Table table, std::string_view key, std::string value) override;
  void erase(metadata::Table table, std::string_view key) override;
  // Counts as a batch of its own.
  Result<void> put_now(metadata::Table table, const std::vector<Row>& rows) override;
  bool freeze() override;
  Result<void> commit_frozen(bool sync) override;

  Result<void> close() override { return below_->close(); }
  metadata::DatabaseStats stats() const override { return below_->stats(); }
  Result<metadata::DatabaseSnapshot> snapshot() override { return below_->snapshot(); }
  std::unique_ptr<metadata::CommittedView> committed_view() const override {
    return below_->committed_view();
  }
  Result<void> prepare_switch(const metadata::KeyTree& next,
                              const std::function<Result<void>()>& go_on) override {
    return below_->prepare_switch(next, go_on);
  }
  Result<void> abandon_switch() override { return below_->abandon_switch(); }
  Result<void> switch_epoch(const metadata::KeyTree& next,
                            const std::function<Result<void>()>& commit) override {
    return below_->switch_epoch(next, commit);
  }
  Result<std::vector<std::string>> reseal(const std::function<Result<void>()>& go_on) override {
    return below_->reseal(go_on);
  }
  Result<std::set<std::string>> needed_files() const override { return below_->needed_files(); }
  std::uint64_t durable_change_count() const override { return below_->durable_change_count(); }

 private:
  std::unique_ptr<metadata::Database> below_;
  std::shared_ptr<TableCounters> counters_;
  std::atomic<std::uint64_t> frozen_rows_{0};
  // Keys of the table chunks that were erased and not put again.
  mutable std::mutex erased_mutex_;
  std::set<std::string, std::less<>> erased_chunks_;
  void note_put(metadata::Table table, std::string_view key);
  // From from to to; all of it where to is empty.
  void count_passed(std::string_view from, std::string_view to) const;
};

}  // namespace nacre::tests
