// SPDX-License-Identifier: Apache-2.0
// The in-memory layers over the database.
#include "metadata/tables/overlay.h"

namespace nacre::metadata {

const Overlay::Entry* Overlay::find(Table table, std::string_view key) const {
  const Rows& rows = rows_[static_cast<std::size_t>(table)];
  const auto found = rows.find(key);
  return found == rows.end() ? nullptr : &found->second;
}

void Overlay::put(Table table, std::string_view key, std::string value, bool is_new) {
  Rows& rows = rows_[static_cast<std::size_t>(table)];
  const auto place = rows.lower_bound(key);
  if (place != rows.end() && place->first == key) {
    place->second.value = std::move(value);
    return;
  }
  rows.emplace_hint(place, std::string(key), Entry{std::move(value), is_new});
  row_count_++;
}

void Overlay::erase(Table table, std::string_view key) {
  Rows& rows = rows_[static_cast<std::size_t>(table)];
  const auto place = rows.lower_bound(key);
  if (place == rows.end() || place->first != key) {
    rows.emplace_hint(place, std::string(key), Entry{std::nullopt, false});
    row_count_++;
  } else if (place->second.is_new) {
    rows.erase(place);
    row_count_--;
  } else {
    place->second.value.reset();
  }
}

}  // namespace nacre::metadata
