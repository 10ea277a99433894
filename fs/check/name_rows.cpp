// SPDX-License-Identifier: Apache-2.0
// The structure check of the tables inodes, dentries, orphans and xattrs.
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "fs/check/structure_parts.h"

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::InodeRow;
using metadata::Table;

namespace {

constexpr std::size_t xattr_name_size_bytes_max = 255;

// The fault of a row that makes no sense by itself, or "". Decoding has already refused values that
// no row may have.
std::string fault_of(const InodeRow& row) {
  switch (row.mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
      break;
    default:
      return fmt::format("mode {:o} names no type of file", row.mode);
  }
  const bool is_directory = S_ISDIR(row.mode);
  if (is_directory != (row.parent.value != 0)) {
    return is_directory ? "a directory without a parent" : "a parent, but it is no directory";
  }
  if (S_ISLNK(row.mode)) {
    if (row.symlink_target.empty() ||
        row.symlink_target.size() > metadata::symlink_size_bytes_max) {
      return fmt::format("a symbolic link with a target of {} bytes", row.symlink_target.size());
    }
  } else if (!row.symlink_target.empty()) {
    return "a target, but it is no symbolic link";
  }
  if (!S_ISREG(row.mode) && row.data_bytes != 0) return "data bytes, but it is no regular file";
  if (row.size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return fmt::format("a size of {} bytes", row.size);
  }
  return {};
}

// S_IFREG and DT_REG differ by a shift (dirent.h, IFTODT).
std::uint8_t entry_type_of(std::uint32_t mode) {
  return static_cast<std::uint8_t>((mode & S_IFMT) >> 12);
}

}  // namespace

Result<> StructureCheck::read_inodes() {
  return scan(Table::inodes, [&](std::string_view key, std::string_view value) {
    const auto number = metadata::decode_inode_key(key);
    if (!number) return undecodable(Table::inodes, key, number.error());
    ++counts_.inode_count;
    const auto row = metadata::decode_inode_row(value);
    if (!row) {
      problem(verdict_of(row.error().code),
              fmt::format("the row of inode {}: {}", number->value, row.error().message), *number);
      // The inode exists, so names that lead to it are not reported as dangling.
      inodes_.append({.number = number->value});
      return;
    }
    if (const auto fault = fault_of(*row); !fault.empty()) {
      wrong(fmt::format("inode {} has {}", number->value, fault), *number);
    }
    if (S_ISDIR(row->mode)) ++counts_.directory_count;
    inodes_.append({.number = number->value,
                    .size = row->size,
                    .data_bytes = row->data_bytes,
                    .parent = row->parent.value,
                    .mode = row->mode,
                    .link_count = row->link_count});
  });
}

Result<> StructureCheck::read_orphans() {
  return scan(Table::orphans, [&](std::string_view key, std::string_view) {
    const auto number = metadata::decode_inode_key(key);
    if (!number) return undecodable(Table::orphans, key, number.error());
    ++counts_.orphan_count;
    InodeFacts* inode = inodes_.find(*number);
    if (inode == nullptr) {
      wrong(fmt::format("inode {} is listed as an orphan but does not exist", number->value));
      return;
    }
    inode->is_orphan = true;
  });
}

Result<> StructureCheck::read_dentries() {
  return scan(Table::dentries, [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_dentry_key(key);
    const auto row = metadata::decode_dentry_row(value);
    if (!parts || !row) {
      return undecodable(Table::dentries, key, parts ? row.error() : parts.error());
    }
    ++counts_.name_count;
    const auto where = [&] {
      return fmt::format("the name '{}' in directory {}", parts->name, parts->parent.value);
    };
    if (system_.name_hash_key &&
        parts->name_hash != metadata::name_hash(*system_.name_hash_key, parts->name)) {
      wrong(fmt::format("{} has the hash of another name, so no lookup finds it", where()),
            parts->parent);
    }
    InodeFacts* parent = inodes_.find(parts->parent);
    InodeFacts* inode = inodes_.find(row->inode);
    if (parent == nullptr) {
      wrong(fmt::format("{} lies in a directory that does not exist", where()), row->inode);
    } else if (!parent->is_directory() && parent->mode != 0) {
      wrong(fmt::format("{} lies in something that is no directory", where()), row->inode);
    } else {
      ++parent->entry_count;
    }
    if (inode == nullptr) {
      problem(Verdict::missing,
              fmt::format("{} names inode {}, which does not exist", where(), row->inode.value),
              parts->parent);
      return;
    }
    if (row->inode == metadata::root_inode) {
      wrong(fmt::format("{} names the root directory", where()), parts->parent);
    }
    ++inode->name_count;
    if (inode->mode == 0) return;  // its row is unreadable, and reported
    if (row->type != entry_type_of(inode->mode)) {
      wrong(fmt::format("{} says that inode {} has type {}, the inode has {}", where(),
                        row->inode.value, row->type, entry_type_of(inode->mode)),
            row->inode);
    }
    if (inode->is_directory()) {
      if (parent != nullptr) ++parent->subdirectory_count;
      if (inode->parent != parts->parent.value) {
        wrong(fmt::format("{} names directory {}, whose own row says that its parent is {}",
                          where(), row->inode.value, inode->parent),
              row->inode);
      }
    }
  });
}

Result<> StructureCheck::read_xattrs() {
  // Rows of one inode follow each other.
  InodeNumber current{0};
  bool exists = false;
  return scan(Table::xattrs, [&](std::string_view key, std::string_view value) {
    constexpr std::size_t number_size = sizeof(std::uint64_t);
    const auto number = metadata::decode_inode_key(key.substr(0, number_size));
    if (!number || key.size() == number_size ||
        key.size() > number_size + xattr_name_size_bytes_max) {
      return undecodable(Table::xattrs, key, {ErrorCode::corrupt, "not the key of an attribute"});
    }
    if (*number != current) {
      current = *number;
      exists = inodes_.find(current) != nullptr;
    }
    const auto name = key.substr(number_size);
    if (!exists) {
      wrong(fmt::format("the extended attribute '{}' belongs to inode {}, which does not exist",
                        name, number->value));
    }
    if (value.empty() || value.front() != 1 ||
        value.size() > 1 + metadata::xattr_value_size_bytes_max) {
      wrong(fmt::format("the extended attribute '{}' of inode {} does not decode", name,
                        number->value),
            *number);
    }
  });
}

void StructureCheck::check_names() {
  InodeFacts* root = inodes_.find(metadata::root_inode);
  if (root == nullptr || (root->mode != 0 && !root->is_directory())) {
    problem(Verdict::missing, "there is no root directory");
  }
  for (const auto& inode : inodes_.all()) {
    if (inode.mode == 0) continue;
    const InodeNumber number{inode.number};
    const bool is_root = number == metadata::root_inode;
    if (inode.is_orphan != (inode.link_count == 0)) {
      wrong(inode.is_orphan
                ? fmt::format("inode {} is listed as an orphan but has {} links", inode.number,
                              inode.link_count)
                : fmt::format("inode {} has no links but is not listed as an orphan", inode.number),
            number);
    }
    if (inode.is_directory()) {
      if (is_root ? inode.name_count != 0 : inode.name_count != (inode.is_orphan ? 0u : 1u)) {
        wrong(fmt::format("directory {} has {} names", inode.number, inode.name_count), number);
      }
      const std::uint32_t links = inode.is_orphan ? 0 : 2 + inode.subdirectory_count;
      if (inode.link_count != links) {
        wrong(fmt::format("directory {} has a link count of {}, it should be {}", inode.number,
                          inode.link_count, links),
              number);
      }
      if (inode.size != inode.entry_count) {
        wrong(fmt::format("directory {} counts {} entries, there are {}", inode.number, inode.size,
                          inode.entry_count),
              number);
      }
    } else if (inode.link_count != inode.name_count) {
      wrong(fmt::format("inode {} has a link count of {}, but {} names lead to it", inode.number,
                        inode.link_count, inode.name_count),
            number);
    }
  }
}

// The other checks have shown that names lead to inodes and that directories have parents. What is
// left is a directory whose chain of parents does not end at the root.
void StructureCheck::check_reachability() {
  if (InodeFacts* root = inodes_.find(metadata::root_inode)) root->is_reached = true;
  std::vector<InodeFacts*> chain;
  for (auto& start : inodes_.all()) {
    if (!start.is_directory() || start.is_reached || start.is_orphan) continue;
    chain.clear();
    InodeFacts* at = &start;
    // Each step marks a directory, so the loop also ends in a circle of parents.
    while (at != nullptr && at->is_directory() && !at->is_reached) {
      at->is_reached = true;
      chain.push_back(at);
      at = inodes_.find(InodeNumber{at->parent});
    }
    const bool ends_in_itself =
        at != nullptr && std::find(chain.begin(), chain.end(), at) != chain.end();
    if (ends_in_itself) {
      wrong(fmt::format("directory {} lies below itself: the root does not lead to it", at->number),
            InodeNumber{at->number});
    } else if (at == nullptr || !at->is_directory()) {
      wrong(fmt::format("directory {} has the parent {}, which is no directory",
                        chain.back()->number, chain.back()->parent),
            InodeNumber{chain.back()->number});
    } else if (at->is_orphan) {
      wrong(fmt::format("directory {} lies in directory {}, which was removed",
                        chain.back()->number, at->number),
            InodeNumber{chain.back()->number});
    }
  }
}

}  // namespace nacre::fs
