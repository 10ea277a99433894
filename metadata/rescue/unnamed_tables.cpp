// SPDX-License-Identifier: Apache-2.0
#include "metadata/rescue/unnamed_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "metadata/rescue/row_cursor.h"

namespace nacre::metadata {

UnnamedTables::UnnamedTables(const ManifestContent& manifest, std::uint64_t manifest_number,
                             const std::vector<std::string>& names)
    : manifest_(manifest), manifest_number_(manifest_number) {
  for (const auto& [number, table] : manifest.tables) {
    std::uint64_t& newest = newest_tables_[table.family];
    newest = std::max(newest, number);
    const auto name = fmt::format("{:06}.sst", number);
    if (!std::binary_search(names.begin(), names.end(), name)) missing_.push_back(&table);
  }
}

bool UnnamedTables::was_in_missing(std::uint32_t family, const VersionedRow& row) const {
  return std::any_of(missing_.begin(), missing_.end(), [&](const LiveTable* table) {
    return table->family == family && row.key >= table->smallest && row.key <= table->largest &&
           row.sequence <= table->sequence_max;
  });
}

Result<bool> UnnamedTables::may_stand_in(std::uint64_t number, const TableRescue& file) const {
  if (!is_unnamed(number) || number > manifest_number_) return false;
  const auto family = std::find_if(manifest_.families.begin(), manifest_.families.end(),
                                   [&](const auto& each) { return each.second == file.family(); });
  if (family == manifest_.families.end()) return false;
  const auto newest = newest_tables_.find(family->first);
  if (newest == newest_tables_.end() || newest->second > number) return false;
  RowCursor cursor(file);
  for (;;) {
    NACRE_ASSIGN(const bool has_row, cursor.next());
    if (!has_row) return true;
    if (!was_in_missing(family->first, cursor.row())) return false;
  }
}

}  // namespace nacre::metadata
