// SPDX-License-Identifier: Apache-2.0
#include "metadata/tables/volume_age.h"

#include <algorithm>
#include <optional>
#include <string>

namespace nacre::metadata {

Result<VolumeAge> read_volume_age(const Database& database) {
  VolumeAge age{.change_count = database.durable_change_count()};
  NACRE_ASSIGN(const auto next, database.get(Table::system, system_key_next_session));
  if (!next) return fail(ErrorCode::corrupt, "the database has no row 'next_session'");
  NACRE_ASSIGN(const std::uint64_t next_ordinal, decode_u64(*next));
  if (next_ordinal == 0) return fail(ErrorCode::corrupt, "the row 'next_session' is 0");
  age.session_count = next_ordinal - 1;
  constexpr std::string_view prefix = system_key_session_prefix;
  std::optional<Error> failure;
  std::uint64_t newest = 0;
  NACRE_TRY(database.scan(
      Table::system, prefix, prefix_end(prefix), [&](std::string_view key, std::string_view value) {
        const auto row = decode_session_row(value);
        if (!row || key.size() != prefix.size() + age.session.size()) {
          failure = row ? Error{ErrorCode::corrupt, "not the key of a session"} : row.error();
          return false;
        }
        if (row->ordinal < newest) return true;
        newest = row->ordinal;
        std::copy(key.begin() + prefix.size(), key.end(), age.session.begin());
        return true;
      }));
  if (failure) return tl::unexpected(*failure);
  return age;
}

Result<bool> has_session(const Database& database, const engine::SessionSalt& salt) {
  NACRE_ASSIGN(const auto row, database.get(Table::system, session_key_of(salt)));
  return row.has_value();
}

}  // namespace nacre::metadata
