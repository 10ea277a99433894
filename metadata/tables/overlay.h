// SPDX-License-Identifier: Apache-2.0
// One transaction group in memory: for every table an ordered map from key to new value or
// tombstone. Not thread-safe; Database holds the lock.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "metadata/tables/database.h"

namespace nacre::metadata {

class Overlay {
 public:
  struct Entry {
    std::optional<std::string> value;  // none: erased
    bool is_new = false;               // neither an older group nor the database has the key
  };
  using Rows = std::map<std::string, Entry, std::less<>>;

  // The changed rows, in the order of their keys' bytes.
  const Rows& rows(Table table) const { return rows_[static_cast<std::size_t>(table)]; }
  // Null if this group does not change the key. Valid until the next put() or erase() of that key.
  const Entry* find(Table table, std::string_view key) const;

  // is_new marks the row as new, which erase() heeds. If this group has the key already, is_new is
  // ignored, and the mark stays as it is.
  void put(Table table, std::string_view key, std::string value, bool is_new);
  // A new row vanishes; any other row becomes a tombstone.
  void erase(Table table, std::string_view key);

  std::uint64_t row_count() const { return row_count_; }
  bool empty() const { return row_count_ == 0; }

 private:
  std::array<Rows, table_count> rows_;
  std::uint64_t row_count_ = 0;
};

}  // namespace nacre::metadata
