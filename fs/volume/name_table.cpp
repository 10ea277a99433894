// SPDX-License-Identifier: Apache-2.0
// Directory entries as rows.
#include "fs/volume/name_table.h"

#include <fmt/format.h>

namespace nacre::fs {

using metadata::DentryRow;
using metadata::InodeNumber;
using metadata::Table;

namespace {

tl::unexpected<Error> in_directory(Error error, InodeNumber parent) {
  return add_context(std::move(error), fmt::format("an entry of directory {}", parent.value));
}

}  // namespace

std::string NameTable::key(InodeNumber parent, std::string_view name) const {
  return metadata::dentry_key(parent, metadata::name_hash(hash_key_, name), name);
}

Result<std::optional<DentryRow>> NameTable::find(InodeNumber parent, std::string_view name) const {
  NACRE_ASSIGN(const auto value, database_.get(Table::dentries, key(parent, name)));
  if (!value) return std::nullopt;
  auto row = metadata::decode_dentry_row(*value);
  if (!row) return in_directory(std::move(row).error(), parent);
  return *row;
}

void NameTable::add(InodeNumber parent, std::string_view name, const DentryRow& row) {
  database_.put_new(Table::dentries, key(parent, name), metadata::encode(row));
}

void NameTable::replace(InodeNumber parent, std::string_view name, const DentryRow& row) {
  database_.put(Table::dentries, key(parent, name), metadata::encode(row));
}

void NameTable::remove(InodeNumber parent, std::string_view name) {
  database_.erase(Table::dentries, key(parent, name));
}

Result<bool> NameTable::is_empty(InodeNumber parent) const {
  bool empty = true;
  const std::string prefix = metadata::dentry_prefix(parent);
  NACRE_TRY(database_.scan(Table::dentries, prefix, metadata::prefix_end(prefix),
                           [&](std::string_view, std::string_view) { return empty = false; }));
  return empty;
}

Result<std::vector<NameTable::Entry>> NameTable::list(InodeNumber parent, std::uint64_t from,
                                                      std::size_t count_min) const {
  std::vector<Entry> entries;
  Result<> bad;
  NACRE_TRY(
      database_.scan(Table::dentries, metadata::dentry_seek_key(parent, from),
                     metadata::prefix_end(metadata::dentry_prefix(parent)),
                     [&](std::string_view key, std::string_view value) {
                       const auto parts = metadata::decode_dentry_key(key);
                       const auto row = metadata::decode_dentry_row(value);
                       if (!parts || !row) {
                         bad = in_directory(parts ? row.error() : parts.error(), parent);
                         return false;
                       }
                       if (entries.size() >= count_min && entries.back().hash != parts->name_hash)
                         return false;
                       entries.push_back(Entry{std::string(parts->name), parts->name_hash, *row});
                       return true;
                     }));
  NACRE_TRY(bad);
  return entries;
}

std::optional<std::string> NameTable::name_of(InodeNumber parent, InodeNumber inode,
                                              std::size_t row_count_max) const {
  std::optional<std::string> name;
  const std::string prefix = metadata::dentry_prefix(parent);
  const auto scanned = database_.scan(Table::dentries, prefix, metadata::prefix_end(prefix),
                                      [&](std::string_view key, std::string_view value) {
                                        const auto parts = metadata::decode_dentry_key(key);
                                        const auto row = metadata::decode_dentry_row(value);
                                        if (parts && row && row->inode == inode)
                                          name = std::string(parts->name);
                                        return !name && --row_count_max > 0;
                                      });
  return scanned ? name : std::nullopt;
}

}  // namespace nacre::fs
