// SPDX-License-Identifier: Apache-2.0
// Reads a database of which files are damaged or missing: every row that lies in good pages and
// frames, the newest of each key, and which rows may be missing.
//
// Where the manifest is whole, it says which tables there are and what keys they hold. Where it is
// not, all tables and logs that lie in the folder count: then a row that was removed may be among
// them, if a table that was done with still lay there.
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

// Keys of which rows cannot be read: from <= key < to (to empty: no end), and changes up to
// sequence_max may be among them.
struct LostRows {
  std::optional<Table> table;  // none: nobody knows which
  std::string from, to;
  std::uint64_t sequence_max = 0;
  std::string file;

  bool covers(Table of, std::string_view key) const {
    return (!table || *table == of) && key >= from && (to.empty() || key < to);
  }
};

struct RescuedRow {
  std::string_view key;
  std::uint64_t sequence = 0;             // 0: not known, since RocksDB drops it in the last level
  std::optional<std::string_view> value;  // none: erased
  // A newer one of this key may have been lost.
  bool is_doubtful = false;
};

class DatabaseRescue {
 public:
  // Reads every file that the database depends on, and changes nothing. Errors: not_found (no such
  // folder), out_of_memory, io of the folder.
  static Result<std::unique_ptr<DatabaseRescue>> open(std::shared_ptr<BackingDirectory> directory,
                                                      std::shared_ptr<const KeyTree> keys);
  virtual ~DatabaseRescue() = default;

  // What is wrong, each with its file; none: the database is as it was written. What the medium did
  // not read is among it, with the medium's error (io, permission).
  virtual const std::vector<Error>& damage() const = 0;
  virtual const std::vector<LostRows>& lost_rows() const = 0;
  // A log is missing, or lacks frames: the last changes, of whatever rows, may have been lost.
  virtual bool may_have_lost_groups() const = 0;
  virtual bool has_manifest() const = 0;

  // The newest row of each key that can be read, in order, also of those that are erased.
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
