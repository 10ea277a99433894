// SPDX-License-Identifier: Apache-2.0
// An edit is a sequence of fields: tag v32, then what the tag says.
#include "metadata/rescue/manifest_edits.h"

#include "metadata/rescue/byte_reader.h"
#include "metadata/sealed_fs/table_salts.h"

namespace nacre::metadata {

namespace {

// RocksDB's numbers (db/version_edit.h of 7.8).
enum Tag : std::uint32_t {
  comparator = 1,
  log_number = 2,
  next_file_number = 3,
  last_sequence = 4,
  compact_pointer = 5,
  deleted_file = 6,
  previous_log_number = 9,
  least_log_number = 10,
  new_file = 103,
  family_id = 200,
  family_added = 201,
  family_dropped = 202,
  family_id_max = 203,
  atomic_group = 300,
  // A field with this bit is a sized text that may be passed over.
  ignorable = 1u << 13,
};
constexpr std::uint32_t last_field_of_file = 1;
constexpr std::uint32_t checksum_of_file = 7;
constexpr std::uint32_t checksum_name_of_file = 8;
// A file's field with this bit may not be passed over. The only such field is for several paths.
constexpr std::uint32_t needed_field_of_file = 1u << 6;
constexpr std::size_t key_suffix_size = 8;

struct Edit {
  std::uint32_t family = 0;
  std::optional<std::string> family_name;
  bool is_drop = false;
  std::optional<std::uint64_t> first_log;
  std::vector<std::uint64_t> deleted;
  std::vector<LiveTable> added;
  std::uint32_t left_of_group = 0;
};

std::string user_key(ByteReader& reader) {
  const auto key = reader.sized_text();
  reader.require(key.size() >= key_suffix_size);
  return reader.is_good() ? std::string(key.substr(0, key.size() - key_suffix_size))
                          : std::string();
}

LiveTable read_file(ByteReader& reader) {
  LiveTable table;
  reader.varint32();  // level
  table.number = reader.varint64();
  reader.varint64();  // size
  table.smallest = user_key(reader);
  table.largest = user_key(reader);
  reader.varint64();  // least sequence
  table.sequence_max = reader.varint64();
  std::string checksum;
  while (reader.is_good()) {
    const std::uint32_t field = reader.varint32();
    if (field == last_field_of_file) break;
    reader.require((field & needed_field_of_file) == 0);
    const auto text = reader.sized_text();
    if (field == checksum_of_file) checksum = text;
    if (field == checksum_name_of_file) table.salt = table_salt_of(text, checksum);
  }
  return table;
}

std::optional<Edit> read_edit(const std::string& record) {
  Edit edit;
  ByteReader reader{std::string_view(record)};
  while (reader.is_good() && !reader.is_at_end()) {
    const std::uint32_t tag = reader.varint32();
    switch (tag) {
      case comparator:
        reader.sized_text();
        break;
      case log_number:
        edit.first_log = reader.varint64();
        break;
      case next_file_number:
      case last_sequence:
      case previous_log_number:
      case least_log_number:
        reader.varint64();
        break;
      case compact_pointer:
        reader.varint32();
        reader.sized_text();
        break;
      case deleted_file:
        reader.varint32();
        edit.deleted.push_back(reader.varint64());
        break;
      case new_file:
        edit.added.push_back(read_file(reader));
        break;
      case family_id:
        edit.family = reader.varint32();
        break;
      case family_added:
        edit.family_name = reader.sized_text();
        break;
      case family_dropped:
        edit.is_drop = true;
        break;
      case family_id_max:
        reader.varint32();
        break;
      case atomic_group:
        edit.left_of_group = reader.varint32();
        break;
      default:
        reader.require((tag & ignorable) != 0);
        reader.sized_text();
    }
  }
  if (!reader.is_good()) return std::nullopt;
  return edit;
}

void apply(const Edit& edit, ManifestContent& content) {
  if (edit.family_name) content.families[edit.family] = *edit.family_name;
  if (edit.is_drop) content.families.erase(edit.family);
  if (edit.first_log) content.first_logs[edit.family] = *edit.first_log;
  for (const std::uint64_t number : edit.deleted) {
    content.tables.erase(number);
    content.removed.insert(number);
  }
  for (LiveTable table : edit.added) {
    table.family = edit.family;
    content.removed.erase(table.number);  // it was moved to another level
    content.tables[table.number] = std::move(table);
  }
}

}  // namespace

std::optional<ManifestContent> read_manifest_edits(const std::vector<std::string>& records) {
  ManifestContent content;
  std::vector<Edit> group;  // counts if its last edit is there
  for (const std::string& record : records) {
    auto edit = read_edit(record);
    if (!edit) return std::nullopt;
    group.push_back(std::move(*edit));
    if (group.back().left_of_group != 0) continue;
    for (const Edit& each : group)
      apply(each, content);
    group.clear();
  }
  if (content.families.empty()) return std::nullopt;
  return content;
}

bool has_all_families(const ManifestContent& manifest, std::uint32_t count) {
  for (std::uint32_t family = 1; family <= count; ++family) {
    if (!manifest.families.contains(family) || !manifest.first_logs.contains(family)) return false;
  }
  return true;
}

}  // namespace nacre::metadata
