// SPDX-License-Identifier: Apache-2.0
// The repair of the tables inodes, dentries, orphans and xattrs. Afterwards the names, link count
// and parent of each inode agree, and each inode has a name below the root.
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "fs/repair/name_repair.h"
#include "fs/store/chunk_map.h"

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::InodeRow;
using metadata::Table;

namespace {

bool has_type(std::uint32_t mode) {
  return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISFIFO(mode) || S_ISSOCK(mode) ||
         S_ISCHR(mode) || S_ISBLK(mode);
}

// Whether the row makes no sense, so that the inode must be made anew from other tables.
bool is_useless(const InodeRow& row) {
  if (!has_type(row.mode)) return true;
  return S_ISLNK(row.mode) && (row.symlink_target.empty() ||
                               row.symlink_target.size() > metadata::symlink_size_bytes_max);
}

bool has_small_fault(const InodeRow& row) {
  return (!S_ISDIR(row.mode) && row.parent.value != 0) ||
         (!S_ISLNK(row.mode) && !row.symlink_target.empty()) ||
         row.size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

std::uint8_t entry_type_of(std::uint32_t mode) {
  return static_cast<std::uint8_t>((mode & S_IFMT) >> 12);
}

}  // namespace

Result<> repair_names(RepairContext& context) {
  return NameRepair(context).run();
}

Result<> NameRepair::run() {
  NACRE_TRY(read_inodes());
  NACRE_TRY(read_orphans());
  NACRE_TRY(make_missing_inodes());
  NACRE_TRY(read_entries());
  NACRE_TRY(choose_directory_names());
  NACRE_TRY(break_circles());
  NACRE_TRY(name_the_nameless());
  NACRE_TRY(finish_inodes());
  return repair_xattrs();
}

Result<> NameRepair::read_inodes() {
  struct Bad {
    std::string key, why;
    std::optional<InodeNumber> inode;
  };
  std::vector<Bad> bad;
  NACRE_TRY(context_.scan(Table::inodes, [&](std::string_view key, std::string_view value) {
    const auto number = metadata::decode_inode_key(key);
    const auto row = metadata::decode_inode_row(value);
    if (!number || !row || is_useless(*row)) {
      bad.push_back({std::string(key), "the row of an inode makes no sense",
                     number ? std::optional(*number) : std::nullopt});
      return;
    }
    nodes_.emplace(number->value, Node{.mode = row->mode,
                                       .link_count = row->link_count,
                                       .parent = row->parent.value,
                                       .size = row->size,
                                       .has_fault = has_small_fault(*row)});
  }));
  for (auto& row : bad)
    NACRE_TRY(context_.draft.erase(Table::inodes, row.key, row.why, row.inode));
  return {};
}

Result<> NameRepair::read_orphans() {
  std::vector<std::string> bad;
  NACRE_TRY(context_.scan(Table::orphans, [&](std::string_view key, std::string_view) {
    const auto number = metadata::decode_inode_key(key);
    Node* node = number ? find(*number) : nullptr;
    if (node == nullptr) {
      bad.emplace_back(key);
    } else {
      node->is_listed = true;
    }
  }));
  for (const auto& key : bad) {
    const auto number = metadata::decode_inode_key(key);
    if (number) erased_orphans_.insert(number->value);
    NACRE_TRY(context_.draft.erase(Table::orphans, key, "an orphan is listed that does not exist",
                                   number ? std::optional(*number) : std::nullopt));
  }
  return {};
}

// Makes inodes without rows from the names and chunks that name them.
Result<> NameRepair::make_missing_inodes() {
  struct Evidence {
    bool is_directory = false;
    bool has_chunks = false;
    std::uint64_t size = 0;
  };
  std::map<std::uint64_t, Evidence> missing;
  NACRE_TRY(context_.scan(Table::dentries, [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_dentry_key(key);
    const auto row = metadata::decode_dentry_row(value);
    if (!parts || !row) return;
    if (find(parts->parent) == nullptr) missing[parts->parent.value].is_directory = true;
    if (find(row->inode) == nullptr && row->type == entry_type_of(S_IFDIR)) {
      missing[row->inode.value].is_directory = true;
    }
  }));
  const std::uint64_t chunk_size = context_.chunk_size_bytes();
  NACRE_TRY(context_.scan(Table::chunks, [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_chunk_key(key);
    if (!parts || find(parts->inode) != nullptr || erased_orphans_.contains(parts->inode.value)) {
      return;
    }
    Evidence& evidence = missing[parts->inode.value];
    evidence.has_chunks = true;
    const auto row = metadata::decode_chunk_map_row(value);
    const std::uint64_t index = parts->index.value;
    const std::uint64_t limit = std::numeric_limits<std::int64_t>::max() / chunk_size;
    const std::uint64_t run = !row || row->chunk ? 1
                              : row->hole        ? row->hole->chunk_count
                                                 : row->lost->chunk_count;
    if (index >= limit || run > limit - index) return;
    const std::uint64_t end = row && row->chunk ? index * chunk_size + content_end(*row->chunk)
                                                : (index + run) * chunk_size;
    evidence.size = std::max(evidence.size, end);
  }));
  if (missing.contains(0)) missing.erase(0);
  const bool lacks_root = find(metadata::root_inode) == nullptr;
  if (lacks_root) missing[metadata::root_inode.value].is_directory = true;
  for (const auto& [number, evidence] : missing) {
    const std::uint32_t mode = number == metadata::root_inode.value ? S_IFDIR | 0755
                               : evidence.is_directory              ? S_IFDIR | 0700
                                                                    : S_IFREG | 0600;
    nodes_.emplace(number, Node{.mode = mode,
                                .link_count = 1,
                                .size = evidence.is_directory ? 0 : evidence.size,
                                .is_made = true});
  }
  return {};
}

Result<> NameRepair::read_entries() {
  NACRE_ASSIGN(const auto hash_key, name_hash_key(context_));
  std::vector<Fix> fixes;
  NACRE_TRY(context_.scan(Table::dentries, [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_dentry_key(key);
    const auto row = metadata::decode_dentry_row(value);
    const auto remove = [&](std::string why) {
      fixes.push_back({std::string(key), {}, {}, std::move(why), {}});
    };
    if (!parts || !row) return remove("a directory entry makes no sense");
    const auto where = [&] {
      return fmt::format("the name '{}' in directory {}", parts->name, parts->parent.value);
    };
    Node* parent = find(parts->parent);
    Node* node = find(row->inode);
    if (parent == nullptr || !S_ISDIR(parent->mode)) {
      return remove(fmt::format("{} lies in something that is no directory", where()));
    }
    if (node == nullptr) {
      return remove(
          fmt::format("{} leads to inode {}, of which nothing is left", where(), row->inode.value));
    }
    if (row->inode == metadata::root_inode) {
      return remove(fmt::format("{} leads to the root directory", where()));
    }
    Entry entry{std::string(key), parts->parent.value, row->inode.value};
    const std::uint64_t hash = metadata::name_hash(hash_key, parts->name);
    const std::uint8_t type = entry_type_of(node->mode);
    if (hash != parts->name_hash || type != row->type) {
      entry.key = metadata::dentry_key(parts->parent, hash, parts->name);
      fixes.push_back({std::string(key), entry.key,
                       metadata::encode(metadata::DentryRow{row->inode, type}),
                       fmt::format("{} {}", where(),
                                   hash != parts->name_hash ? "has the hash of another name"
                                                            : "says another type than it is"),
                       row->inode});
    }
    ++parent->entry_count;
    if (S_ISDIR(node->mode)) {
      directory_entries_[row->inode.value].push_back(std::move(entry));
    } else {
      ++node->name_count;
    }
  }));
  for (const Fix& fix : fixes)
    NACRE_TRY(apply(fix));
  return {};
}

Result<> NameRepair::apply(const Fix& fix) {
  if (fix.new_key.empty() || fix.new_key != fix.key) {
    NACRE_TRY(context_.draft.erase(Table::dentries, fix.key, fix.why, fix.inode));
  }
  if (fix.new_key.empty()) return {};
  if (fix.new_key != fix.key) {
    // The same name is already there under its right hash, so this entry was never visible.
    NACRE_ASSIGN(const auto taken, context_.database().get(Table::dentries, fix.new_key));
    if (taken) return forget_entry(fix);
  }
  return context_.draft.put(Table::dentries, fix.new_key, fix.value, fix.why, fix.inode);
}

// Removes an entry that was counted before.
Result<> NameRepair::forget_entry(const Fix& fix) {
  const auto parts = metadata::decode_dentry_key(fix.new_key);
  if (!parts || !fix.inode) return {};
  if (Node* parent = find(parts->parent)) --parent->entry_count;
  Node* node = find(*fix.inode);
  if (node == nullptr) return {};
  if (!S_ISDIR(node->mode)) {
    --node->name_count;
    return {};
  }
  auto& entries = directory_entries_[fix.inode->value];
  const auto place = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.key == fix.new_key; });
  if (place != entries.end()) entries.erase(place);
  return {};
}

Result<> NameRepair::remove_entry(const Entry& entry, const std::string& why) {
  if (Node* parent = find(InodeNumber{entry.parent})) --parent->entry_count;
  return context_.draft.erase(Table::dentries, entry.key, why, InodeNumber{entry.inode});
}

// A directory has one name: that in the directory which its row names as its parent, if there is
// one.
Result<> NameRepair::choose_directory_names() {
  for (auto& [number, entries] : directory_entries_) {
    Node& node = nodes_.at(number);
    auto chosen = std::find_if(entries.begin(), entries.end(),
                               [&](const Entry& entry) { return entry.parent == node.parent; });
    if (entries.empty()) continue;
    if (chosen == entries.end()) chosen = entries.begin();
    std::swap(*chosen, entries.front());
    for (std::size_t i = 1; i < entries.size(); ++i) {
      NACRE_TRY(remove_entry(
          entries[i], fmt::format("directory {} has another name, and can have only one", number)));
    }
    entries.resize(1);
    node.name_count = 1;
    node.parent = entries.front().parent;
    ++nodes_.at(node.parent).subdirectory_count;
  }
  return {};
}

// If directories lie below themselves, each circle is opened at its lowest number.
Result<> NameRepair::break_circles() {
  enum : std::uint8_t { unseen, on_the_way, done };
  std::map<std::uint64_t, std::uint8_t> states;
  for (const auto& [start, entries] : directory_entries_) {
    std::vector<std::uint64_t> way;
    std::uint64_t at = start;
    bool has_parent = true;
    while (has_parent && states[at] == unseen) {
      states[at] = on_the_way;
      way.push_back(at);
      const auto place = directory_entries_.find(at);
      has_parent = place != directory_entries_.end() && !place->second.empty();
      if (has_parent) at = place->second.front().parent;
    }
    if (has_parent && states[at] == on_the_way) {
      const auto first = std::find(way.begin(), way.end(), at);
      const std::uint64_t lowest = *std::min_element(first, way.end());
      auto& entry = directory_entries_[lowest];
      NACRE_TRY(remove_entry(entry.front(), fmt::format("directory {} lies below itself", lowest)));
      --nodes_.at(entry.front().parent).subdirectory_count;
      entry.clear();
      nodes_.at(lowest).name_count = 0;
    }
    for (const std::uint64_t number : way)
      states[number] = done;
  }
  return {};
}

// A file that was unlinked while it was open needs no name. The next mount removes it.
bool NameRepair::is_orphan(const Node& node) const {
  return node.is_listed && node.link_count == 0 && node.name_count == 0 && node.entry_count == 0;
}

Result<> NameRepair::name_the_nameless() {
  std::vector<std::uint64_t> nameless;
  for (const auto& [number, node] : nodes_) {
    if (number == metadata::root_inode.value || node.name_count != 0 || is_orphan(node)) continue;
    nameless.push_back(number);
  }
  for (const std::uint64_t number : nameless)
    NACRE_TRY(put_into_lost_found(number));
  return {};
}

Result<> NameRepair::put_into_lost_found(std::uint64_t number) {
  NACRE_ASSIGN(const std::uint64_t folder, lost_found());
  NACRE_ASSIGN(const auto hash_key, name_hash_key(context_));
  Node& node = nodes_.at(number);
  std::string name = fmt::format("#{}", number);
  for (int i = 2;; ++i) {
    const auto key =
        metadata::dentry_key(InodeNumber{folder}, metadata::name_hash(hash_key, name), name);
    NACRE_ASSIGN(const auto taken, context_.database().get(Table::dentries, key));
    if (!taken) {
      NACRE_TRY(context_.draft.put(
          Table::dentries, key,
          metadata::encode(metadata::DentryRow{InodeNumber{number}, entry_type_of(node.mode)}),
          fmt::format("no name led to inode {}", number), InodeNumber{number}));
      break;
    }
    name = fmt::format("#{}-{}", number, i);
  }
  Node& parent = nodes_.at(folder);
  ++parent.entry_count;
  ++node.name_count;
  if (S_ISDIR(node.mode)) {
    node.parent = folder;
    ++parent.subdirectory_count;
  }
  return {};
}

// The directory for inodes without a name. It is found or made once.
Result<std::uint64_t> NameRepair::lost_found() {
  if (lost_found_ != 0) return lost_found_;
  NACRE_ASSIGN(const auto hash_key, name_hash_key(context_));
  std::string name = "lost+found";
  for (int i = 2;; ++i) {
    const auto key =
        metadata::dentry_key(metadata::root_inode, metadata::name_hash(hash_key, name), name);
    NACRE_ASSIGN(const auto value, context_.database().get(Table::dentries, key));
    if (value) {
      NACRE_ASSIGN(const auto row, metadata::decode_dentry_row(*value));
      const Node* node = find(row.inode);
      if (node != nullptr && S_ISDIR(node->mode)) return lost_found_ = row.inode.value;
      name = fmt::format("lost+found-{}", i);
      continue;
    }
    NACRE_ASSIGN(lost_found_, next_inode());
    NACRE_TRY(context_.draft.put(
        Table::dentries, key,
        metadata::encode(metadata::DentryRow{InodeNumber{lost_found_}, entry_type_of(S_IFDIR)}),
        "a place for what has no name", InodeNumber{lost_found_}));
    nodes_.emplace(lost_found_, Node{.mode = S_IFDIR | 0700,
                                     .link_count = 2,
                                     .name_count = 1,
                                     .parent = metadata::root_inode.value,
                                     .is_made = true});
    Node& root = nodes_.at(metadata::root_inode.value);
    ++root.entry_count;
    ++root.subdirectory_count;
    return lost_found_;
  }
}

// The number is above all numbers in use, because no inode number is ever used twice.
Result<std::uint64_t> NameRepair::next_inode() {
  NACRE_ASSIGN(const auto value,
               context_.database().get(Table::system, metadata::system_key_next_inode));
  std::uint64_t next = nodes_.empty() ? 2 : nodes_.rbegin()->first + 1;
  if (value) {
    if (const auto known = metadata::decode_u64(*value)) next = std::max(next, *known);
  }
  NACRE_TRY(context_.draft.put(Table::system, std::string(metadata::system_key_next_inode),
                               metadata::encode_u64(next + 1), "the number of a new inode"));
  return next;
}

}  // namespace nacre::fs
