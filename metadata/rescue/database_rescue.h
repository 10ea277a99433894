// SPDX-License-Identifier: Apache-2.0
// Reads a database whose files are damaged or missing. Finds every row in good pages and frames,
// the newest row of each key, and which rows may be missing.
//
// If the manifest is whole, it says which tables there are and what keys they hold. If a table that
// it names is missing, it may have lost its last entries: then some tables count that it does not
// name (unnamed_tables.h). Without a manifest all tables and logs in the folder count. Then a
// removed row may be among them, if the folder still had a table that was no longer used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metadata/tables/database.h"

namespace nacre::metadata {

// Keys whose rows cannot be read: from <= key < to. If to is empty, there is no end. Changes up to
// sequence_max may be among them.
struct LostRows {
  std::optional<Table> table;  // none if the table is unknown
  std::string from, to;
  std::uint64_t sequence_max = 0;
  std::string file;

  bool covers(Table of, std::string_view key) const {
    return (!table || *table == of) && key >= from && (to.empty() || key < to);
  }
};

struct RescuedRow {
  std::string_view key;
  std::uint64_t sequence = 0;             // 0 if unknown, since RocksDB drops it in the last level
  std::optional<std::string_view> value;  // none: erased
  // Whether a newer row of this key may have been lost.
  bool is_doubtful = false;
};

class DatabaseRescue {
 public:
  // Reads every file that the database depends on, and changes nothing. Errors: not_found (no such
  // folder), out_of_memory, io of the folder.
  static Result<std::unique_ptr<DatabaseRescue>> open(std::shared_ptr<BackingDirectory> directory,
                                                      std::shared_ptr<const KeyTree> keys);
  virtual ~DatabaseRescue() = default;

  // The damage that was found, each with its file. If there is none, the database is as it was
  // written. Parts that the medium did not read are among it, with the medium's error (io,
  // permission).
  virtual const std::vector<Error>& damage() const = 0;
  virtual const std::vector<LostRows>& lost_rows() const = 0;
  // Whether a log is missing or lacks frames: then the last changes, of any rows, may have been
  // lost.
  virtual bool may_have_lost_groups() const = 0;
  virtual bool has_manifest() const = 0;

  // Visits the newest row of each key that can be read, in order, also of keys that are erased.
  virtual Result<void> scan(Table table,
                            const std::function<Result<void>(const RescuedRow&)>& visit) const = 0;
  bool may_have_lost(Table table, std::string_view key) const {
    for (const LostRows& lost : lost_rows()) {
      if (lost.covers(table, key)) return true;
    }
    return false;
  }
};

}  // namespace nacre::metadata
