// SPDX-License-Identifier: Apache-2.0
// The last part of the repair of names: the inodes' own rows, and rows that name inodes by number.
#include <sys/stat.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "fs/repair/name_repair.h"

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::InodeRow;
using metadata::Table;

namespace {

constexpr std::size_t xattr_name_size_bytes_max = 255;
constexpr auto file_size_max = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

Result<std::array<Byte, 16>> name_hash_key(const RepairContext& context) {
  NACRE_ASSIGN(const auto value,
               context.database().get(Table::system, metadata::system_key_name_hash));
  std::array<Byte, 16> key{};
  if (!value || value->size() != key.size()) {
    return fail(ErrorCode::corrupt, "the database has no key for the hash of names");
  }
  std::copy(value->begin(), value->end(), key.begin());
  return key;
}

// Without the old key no name can be found by its hash. So a new key is made, and the repair of
// names gives each entry its new hash.
Result<> repair_name_hash(RepairContext& context) {
  if (name_hash_key(context)) return {};
  std::string key(16, '\0');
  context.draw.fill({reinterpret_cast<Byte*>(key.data()), key.size()});
  return context.draft.put(Table::system, std::string(metadata::system_key_name_hash), key,
                           "the key for the hash of names is gone: a new one");
}

Result<> NameRepair::finish_inodes() {
  for (const auto& [number, node] : nodes_)
    NACRE_TRY(finish(number, node));
  return {};
}

Result<> NameRepair::finish(std::uint64_t number, const Node& node) {
  const InodeNumber inode{number};
  const bool stays_orphan = is_orphan(node);
  if (node.is_listed && !stays_orphan) {
    NACRE_TRY(context_.draft.erase(Table::orphans, metadata::orphan_key(inode),
                                   fmt::format("inode {} is no orphan: it has a name", number),
                                   inode));
  }
  const bool is_directory = S_ISDIR(node.mode);
  const std::uint32_t links = stays_orphan   ? 0
                              : is_directory ? 2 + node.subdirectory_count
                                             : node.name_count;
  // If nothing can be wrong with the row, it is not read.
  if (!is_directory && !node.is_made && !node.has_fault && links == node.link_count) return {};
  const std::string key = metadata::inode_key(inode);
  InodeRow row;
  std::string why;
  const auto note = [&](std::string what) { why += (why.empty() ? "" : ", ") + what; };
  if (node.is_made) {
    const metadata::Timestamp now{.seconds = context_.draw.seconds(), .nanoseconds = 0};
    row = {.mode = node.mode,
           .link_count = links,
           .size = node.size,
           .accessed = now,
           .modified = now,
           .changed = now,
           .born = now,
           .symlink_target = {}};
    note(fmt::format("inode {} has no row: made anew as a {} of root's", number,
                     is_directory ? "directory" : "file"));
  } else {
    NACRE_ASSIGN(const auto value, context_.database().get(Table::inodes, key));
    if (!value) return fail(ErrorCode::corrupt, "the row of an inode went away");
    NACRE_ASSIGN(row, metadata::decode_inode_row(*value));
    if (!S_ISLNK(row.mode) && !row.symlink_target.empty()) {
      row.symlink_target.clear();
      note(fmt::format("inode {} is no symbolic link, but had a target", number));
    }
    if (row.size > file_size_max) {
      note(fmt::format("inode {} had a size of {} bytes", number, row.size));
      row.size = 0;
    }
    if (row.link_count != links) {
      note(fmt::format("inode {} had a link count of {}, but {} lead to it", number, row.link_count,
                       links));
      row.link_count = links;
    }
  }
  const std::uint64_t parent = !is_directory                          ? 0
                               : number == metadata::root_inode.value ? number
                                                                      : node.parent;
  if (row.parent.value != parent) {
    if (!node.is_made) {
      note(fmt::format("inode {} named the wrong directory as its parent", number));
    }
    row.parent = InodeNumber{parent};
  }
  if (is_directory && row.size != node.entry_count) {
    if (!node.is_made) {
      note(fmt::format("directory {} counted {} entries, there are {}", number, row.size,
                       node.entry_count));
    }
    row.size = node.entry_count;
  }
  if (why.empty()) return {};
  return context_.draft.put(Table::inodes, key, metadata::encode(row), why, inode);
}

Result<> NameRepair::repair_xattrs() {
  struct Bad {
    std::string key, why;
    std::optional<InodeNumber> inode;
  };
  std::vector<Bad> bad;
  NACRE_TRY(context_.scan(Table::xattrs, [&](std::string_view key, std::string_view value) {
    constexpr std::size_t number_size = sizeof(std::uint64_t);
    const auto number = metadata::decode_inode_key(key.substr(0, number_size));
    if (!number || key.size() == number_size ||
        key.size() > number_size + xattr_name_size_bytes_max || value.empty() ||
        value.front() != 1 || value.size() > 1 + metadata::xattr_value_size_bytes_max) {
      bad.push_back({std::string(key), "an extended attribute makes no sense", {}});
    } else if (find(*number) == nullptr) {
      bad.push_back({std::string(key),
                     fmt::format("the extended attribute '{}' belongs to inode {}, of which "
                                 "nothing is left",
                                 key.substr(number_size), number->value),
                     *number});
    }
  }));
  for (const auto& row : bad)
    NACRE_TRY(context_.draft.erase(Table::xattrs, row.key, row.why, row.inode));
  return {};
}

}  // namespace nacre::fs
