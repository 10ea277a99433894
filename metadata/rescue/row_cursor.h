// SPDX-License-Identifier: Apache-2.0
// Walks rows in their order: those of a table file, without the blocks that cannot be read, or
// those of a log's groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "metadata/rescue/table_rescue.h"

namespace nacre::metadata {

// Not thread-safe. The file outlives the cursor.
class RowCursor {
 public:
  explicit RowCursor(const TableRescue& file) : file_(&file) {}
  explicit RowCursor(const VersionedRows& rows) : rows_(rows) {}
  // Goes to the next row, at first to the first one. False: there is none. Error: out_of_memory.
  Result<bool> next() {
    ++at_;
    while (at_ >= rows_.size()) {
      if (file_ == nullptr || block_ == file_->block_count()) return false;
      auto rows = file_->read_block(block_++);
      at_ = 0;
      rows_.clear();
      if (rows) {
        rows_ = std::move(*rows);
      } else if (rows.error().code == ErrorCode::out_of_memory) {
        return tl::unexpected(rows.error());
      }
    }
    return true;
  }
  const VersionedRow& row() const { return rows_[at_]; }

 private:
  const TableRescue* file_ = nullptr;
  std::size_t block_ = 0;
  VersionedRows rows_;
  std::size_t at_ = SIZE_MAX;
};

// Orders by key, and rows of one key with the newest first.
inline bool comes_after(const RowCursor* a, const RowCursor* b) {
  const int order = a->row().key.compare(b->row().key);
  return order != 0 ? order > 0 : a->row().sequence < b->row().sequence;
}

}  // namespace nacre::metadata
