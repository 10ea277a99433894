// SPDX-License-Identifier: Apache-2.0
// Reading directories, and the way from an inode back to its path.
//
// Entries come in the order of their names' hashes, and an entry's cookie is its hash: to go on
// after it means to go on with the next greater hash, whatever came or went meanwhile. Should names
// share a hash, all but the last of them carry the cookie of the entry before: a reader who stopped
// among them sees some of them twice, but misses none.
#include <algorithm>
#include <shared_mutex>

#include <dirent.h>
#include <fmt/format.h>

#include "fs/volume/volume_impl.h"

namespace nacre::fs {

namespace {

constexpr std::uint64_t cookie_dot = 1;
constexpr std::uint64_t cookie_dot_dot = 2;
constexpr std::size_t first_batch_count = 32;
constexpr std::size_t batch_count_max = 256;
// How far a path in a message is worth looking for.
constexpr std::size_t path_depth_max = 4096;
constexpr std::size_t name_search_row_count_max = 1u << 16;

}  // namespace

Result<> VolumeImpl::read_directory(InodeNumber number, std::uint64_t cookie, bool with_attributes,
                                    const std::function<bool(const DirectoryEntry&)>& take) {
  NACRE_ASSIGN(const InodeRef directory, acquire_directory(number));
  if (cookie == 0) note_access(*directory);
  if (cookie < cookie_dot) {
    if (!take({.name = ".", .inode = number, .type = DT_DIR, .cookie = cookie_dot})) return {};
  }
  if (cookie < cookie_dot_dot) {
    const InodeNumber parent = directory->lock()->row.parent;
    if (!take({.name = "..", .inode = parent, .type = DT_DIR, .cookie = cookie_dot_dot})) return {};
    cookie = cookie_dot_dot;
  }
  for (std::size_t count = first_batch_count;; count = std::min(2 * count, batch_count_max)) {
    std::shared_lock names(namespace_lock_);
    NACRE_ASSIGN(const auto entries, names_.list(number, cookie + 1, count));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const NameTable::Entry& found = entries[i];
      const bool is_last_of_hash = i + 1 == entries.size() || entries[i + 1].hash != found.hash;
      if (is_last_of_hash) cookie = found.hash;
      DirectoryEntry entry{
          .name = found.name, .inode = found.row.inode, .type = found.row.type, .cookie = cookie};
      if (!with_attributes) {
        if (!take(entry)) return {};
        continue;
      }
      // An entry whose inode is damaged is listed all the same.
      InodeRef inode;
      Attributes attributes;
      if (auto acquired = inodes_.acquire(found.row.inode)) {
        inode = std::move(*acquired);
        remember_name(*inode, number, found.name);
        attributes = attributes_of(*inode);
        entry.attributes = &attributes;
      }
      if (!take(entry)) return {};
      if (inode) inodes_.add_lookup(inode);
    }
    if (entries.size() < count) return {};
  }
}

std::string VolumeImpl::path_of(InodeNumber number) {
  std::string path;
  for (std::size_t depth = 0; depth < path_depth_max; ++depth) {
    if (number == metadata::root_inode) return path.empty() ? "/" : path;
    const auto inode = inodes_.acquire(number);
    if (!inode) break;
    InodeNumber parent;
    std::string name;
    {
      const auto locked = (*inode)->lock();
      parent = (*inode)->is_directory() ? locked->row.parent : locked->name_parent;
      if (parent == locked->name_parent) name = locked->name;
      if (path.empty() && locked->row.link_count == 0) path = " (deleted)";
    }
    if (name.empty() && parent.value != 0) {
      name = names_.name_of(parent, number, name_search_row_count_max).value_or("");
    }
    if (name.empty()) break;
    path = fmt::format("/{}{}", name, path);
    number = parent;
  }
  return fmt::format("(inode {}){}", number.value, path);
}

}  // namespace nacre::fs
