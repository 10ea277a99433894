// SPDX-License-Identifier: Apache-2.0
// The structure check of the table system: counters, totals, sessions.
#include <algorithm>

#include <fmt/format.h>

#include "fs/check/structure_parts.h"
#include "metadata/format/checkpoint.h"
#include "metadata/format/scrub_row.h"

namespace nacre::fs {

using metadata::Table;

Result<> StructureCheck::read_system() {
  std::optional<std::uint64_t> keyring_generation;
  const std::map<std::string_view, std::optional<std::uint64_t>*> numbers = {
      {metadata::system_key_next_inode, &system_.next_inode},
      {metadata::system_key_next_segment, &system_.next_segment},
      {metadata::system_key_next_session, &system_.next_session},
      {metadata::system_key_inode_count, &system_.inode_count},
      {metadata::system_key_data_bytes, &system_.data_bytes},
      {metadata::system_key_keyring, &keyring_generation},
  };
  constexpr std::string_view session_prefix = metadata::system_key_session_prefix;
  NACRE_TRY(scan(Table::system, [&](std::string_view key, std::string_view value) {
    if (const auto number = numbers.find(key); number != numbers.end()) {
      if (auto decoded = metadata::decode_u64(value)) {
        *number->second = *decoded;
      } else {
        undecodable(Table::system, key, decoded.error());
      }
    } else if (key == metadata::system_key_superblock) {
      const auto generation = metadata::decode_u64(value);
      if (!generation) undecodable(Table::system, key, generation.error());
    } else if (key == metadata::system_key_name_hash) {
      std::array<Byte, 16> hash_key;
      if (value.size() != hash_key.size()) {
        wrong(fmt::format("the key of the name hash has {} bytes instead of 16", value.size()));
        return;
      }
      std::copy(value.begin(), value.end(), hash_key.begin());
      system_.name_hash_key = hash_key;
    } else if (key == metadata::system_key_scrub) {
      const auto row = metadata::decode_scrub_row(value);
      if (!row) undecodable(Table::system, key, row.error());
    } else if (key == metadata::system_key_rotation) {
      const auto row = metadata::decode_rotation_row(value);
      if (!row) undecodable(Table::system, key, row.error());
    } else if (key == metadata::system_key_genuine) {
      const auto epoch = metadata::decode_u64(value);
      if (!epoch) undecodable(Table::system, key, epoch.error());
    } else if (key.starts_with(metadata::system_key_genuine_prefix)) {
      const auto digest = metadata::decode_genuine(value);
      if (!digest) undecodable(Table::system, key, digest.error());
    } else if (key.starts_with(session_prefix)) {
      engine::SessionSalt salt;
      const auto rest = key.substr(session_prefix.size());
      const auto row = metadata::decode_session_row(value);
      if (rest.size() != salt.size() || !row) {
        undecodable(Table::system, key,
                    row ? Error{ErrorCode::corrupt, "not the key of a session"} : row.error());
        return;
      }
      std::copy(rest.begin(), rest.end(), salt.begin());
      system_.sessions.emplace(salt, *row);
      if (!system_.session_by_ordinal.emplace(row->ordinal, salt).second) {
        wrong(fmt::format("two write sessions have the number {}", row->ordinal));
      }
    } else if (key.starts_with(metadata::system_key_checkpoint_prefix)) {
      const auto checkpoint = metadata::decode_checkpoint_key(key);
      const auto row = metadata::decode_checkpoint_row(value);
      if (!checkpoint || !row) {
        undecodable(Table::system, key, checkpoint ? row.error() : checkpoint.error());
      }
    } else {
      wrong(fmt::format("the table system has a row '{}' that this version does not know", key));
    }
  }));
  for (const auto& [name, value] : numbers) {
    if (!*value) wrong(fmt::format("the table system has no row '{}'", name));
  }
  if (!system_.name_hash_key) {
    wrong(fmt::format("the table system has no row '{}'", metadata::system_key_name_hash));
  }
  return {};
}

// Runs after the checks of all other tables, which have counted their rows.
Result<> StructureCheck::check_system() {
  const auto past = [&](std::string_view what, std::optional<std::uint64_t> next,
                        std::uint64_t used) {
    if (next && *next <= used) {
      wrong(fmt::format("the next {} number would be {}, but {} is in use", what, *next, used));
    }
  };
  if (!inodes_.all().empty()) past("inode", system_.next_inode, inodes_.all().back().number);
  past("segment", system_.next_segment, segment_number_max_);
  if (!system_.session_by_ordinal.empty()) {
    past("session", system_.next_session, system_.session_by_ordinal.rbegin()->first);
  }
  if (system_.inode_count && *system_.inode_count != counts_.inode_count) {
    wrong(fmt::format("the database counts {} inodes, there are {}", *system_.inode_count,
                      counts_.inode_count));
  }
  if (system_.data_bytes && *system_.data_bytes != counts_.data_bytes) {
    wrong(fmt::format("the database counts {} bytes of data, there are {}", *system_.data_bytes,
                      counts_.data_bytes));
  }
  return {};
}

}  // namespace nacre::fs
