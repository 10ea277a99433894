// SPDX-License-Identifier: Apache-2.0
// Names, attributes and extended attributes of the volume in memory. Content is in
// memory_volume_data.cpp.
#include "tests/support/memory_volume.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "fs/volume/acl.h"
#include "fs/volume/kernel_clock.h"

namespace nacre::tests {

namespace {

std::uint8_t entry_type(std::uint32_t mode) {
  return static_cast<std::uint8_t>((mode & S_IFMT) >> 12);
}

bool is_immutable(const Attributes& attributes) {
  return (attributes.flags & metadata::inode_flag_immutable) != 0;
}

}  // namespace

bool MemoryVolume::is_frozen(const Attributes& attributes) {
  return (attributes.flags & (metadata::inode_flag_immutable | metadata::inode_flag_append)) != 0;
}

const MemoryVolume::Entries::Entry* MemoryVolume::Entries::find(std::string_view name) const {
  const auto cookie = cookies.find(std::string(name));
  return cookie == cookies.end() ? nullptr : &by_cookie.at(cookie->second);
}

void MemoryVolume::Entries::add(std::string_view name, InodeNumber inode) {
  const std::uint64_t cookie = next_cookie++;
  by_cookie.emplace(cookie, Entry{std::string(name), inode});
  cookies.emplace(name, cookie);
}

void MemoryVolume::Entries::remove(std::string_view name) {
  const auto cookie = cookies.find(std::string(name));
  by_cookie.erase(cookie->second);
  cookies.erase(cookie);
}

MemoryVolume::MemoryVolume() {
  auto root = std::make_unique<Node>();
  root->attributes.inode = metadata::root_inode;
  root->attributes.mode = S_IFDIR | 0755;
  root->attributes.uid = geteuid();
  root->attributes.gid = getegid();
  root->attributes.link_count = 2;
  const Timestamp time = fs::kernel_now();
  root->attributes.accessed = root->attributes.modified = time;
  root->attributes.changed = root->attributes.born = time;
  root->lookups = 1;  // the kernel never forgets it
  root->parent = metadata::root_inode;
  nodes_.emplace(metadata::root_inode, std::move(root));
  sync_thread_ = std::thread([this] { run_syncs(); });
}

MemoryVolume::~MemoryVolume() {
  {
    std::lock_guard lock(sync_mutex_);
    stopping_ = true;
  }
  sync_wake_.notify_all();
  sync_thread_.join();
}

Result<MemoryVolume::Node*> MemoryVolume::find(InodeNumber inode) {
  const auto node = nodes_.find(inode);
  if (node == nodes_.end()) return fail(ErrorCode::stale);
  return node->second.get();
}

Result<MemoryVolume::Node*> MemoryVolume::find_directory(InodeNumber inode) {
  NACRE_ASSIGN(Node * node, find(inode));
  if (!S_ISDIR(node->attributes.mode)) return fail(ErrorCode::not_directory);
  return node;
}

Result<MemoryVolume::Node*> MemoryVolume::find_child(Node& directory, std::string_view name) {
  const Entries::Entry* entry = directory.entries.find(name);
  if (entry == nullptr) return fail(ErrorCode::not_found);
  return find(entry->inode);
}

Result<> MemoryVolume::check_name(std::string_view name) {
  if (name.size() > metadata::name_size_bytes_max) return fail(ErrorCode::name_too_long);
  return {};
}

Attributes MemoryVolume::snapshot(Node& node) {
  std::lock_guard lock(node.data_mutex);
  Attributes result = node.attributes;
  if (S_ISDIR(result.mode)) result.size = node.entries.cookies.size();
  result.blocks = node.blocks.size() * (block_size_bytes / 512);
  result.has_holes = S_ISREG(result.mode) &&
                     node.blocks.size() < (result.size + block_size_bytes - 1) / block_size_bytes;
  return result;
}

Result<Attributes> MemoryVolume::lookup(InodeNumber parent, std::string_view name) {
  if (const auto call = before_lookup(name)) call();
  std::unique_lock lock(tree_);
  NACRE_TRY(check_name(name));
  NACRE_ASSIGN(Node * directory, find_directory(parent));
  Node* node = directory;
  if (name == "..") {
    NACRE_ASSIGN(node, find(directory->parent));
  } else if (name != ".") {
    NACRE_ASSIGN(node, find_child(*directory, name));
  }
  ++node->lookups;
  return snapshot(*node);
}

Result<Attributes> MemoryVolume::lookup_inode(InodeNumber inode) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  if (node->attributes.link_count == 0) return fail(ErrorCode::stale);
  ++node->lookups;
  return snapshot(*node);
}

bool MemoryVolume::forget(InodeNumber inode, std::uint64_t lookups) {
  std::unique_lock lock(tree_);
  const auto node = find(inode);
  if (!node) return false;
  (*node)->lookups -= std::min(lookups, (*node)->lookups);
  const bool is_known = (*node)->lookups > 0;
  drop_if_unused(**node);
  return is_known;
}

void MemoryVolume::drop_if_unused(Node& node) {
  if (node.lookups == 0 && node.attributes.link_count == 0) {
    const InodeNumber inode = node.attributes.inode;  // a copy: the key must outlive the node
    nodes_.erase(inode);
  }
}

Result<MemoryVolume::Node*> MemoryVolume::make(Node& parent, const Caller& caller,
                                               std::uint32_t mode) {
  if (is_immutable(parent.attributes)) return fail(ErrorCode::not_permitted);
  auto node = std::make_unique<Node>();
  Attributes& attributes = node->attributes;
  attributes.inode = InodeNumber{next_inode_++};
  attributes.uid = caller.uid;
  attributes.gid = caller.gid;
  if ((parent.attributes.mode & S_ISGID) != 0) {
    attributes.gid = parent.attributes.gid;
    if (S_ISDIR(mode)) mode |= S_ISGID;
  }
  const Timestamp time = fs::kernel_now();
  attributes.accessed = attributes.modified = attributes.changed = attributes.born = time;
  const auto default_acl = parent.xattrs.find(fs::acl_default_name);
  if (S_ISLNK(mode)) {
    attributes.mode = mode;
  } else if (default_acl == parent.xattrs.end()) {
    attributes.mode = mode & ~caller.umask;
  } else {
    NACRE_ASSIGN(const fs::Acl acl, fs::decode_acl(default_acl->second));
    const fs::InheritedAcl inherited = fs::inherit_acl(acl, mode & 0777);
    attributes.mode = (mode & ~0777u) | (inherited.mode & 0777);
    if (!inherited.access.empty()) {
      node->xattrs.emplace(fs::acl_access_name, fs::encode_acl(inherited.access));
    }
    if (S_ISDIR(mode)) node->xattrs.insert(*default_acl);
  }
  Node* made = node.get();
  nodes_.emplace(attributes.inode, std::move(node));
  return made;
}

void MemoryVolume::add_entry(Node& directory, std::string_view name, Node& node) {
  directory.entries.add(name, node.attributes.inode);
  if (S_ISDIR(node.attributes.mode)) {
    ++directory.attributes.link_count;
    node.parent = directory.attributes.inode;
  }
  directory.attributes.modified = directory.attributes.changed = fs::kernel_now();
}

void MemoryVolume::remove_entry(Node& directory, std::string_view name, Node& node) {
  directory.entries.remove(name);
  if (S_ISDIR(node.attributes.mode)) --directory.attributes.link_count;
  directory.attributes.modified = directory.attributes.changed = fs::kernel_now();
}

Result<MemoryVolume::Node*> MemoryVolume::make_named(InodeNumber parent, std::string_view name,
                                                     const Caller& caller, std::uint32_t mode) {
  NACRE_TRY(check_name(name));
  NACRE_ASSIGN(Node * directory, find_directory(parent));
  if (directory->attributes.link_count == 0) return fail(ErrorCode::not_found);
  if (directory->entries.find(name) != nullptr) return fail(ErrorCode::exists);
  NACRE_ASSIGN(Node * node, make(*directory, caller, mode));
  node->attributes.link_count = S_ISDIR(mode) ? 2 : 1;
  add_entry(*directory, name, *node);
  node->lookups = 1;
  return node;
}

Result<Attributes> MemoryVolume::make_node(InodeNumber parent, std::string_view name,
                                           const Caller& caller, std::uint32_t mode,
                                           std::uint64_t rdev) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * node, make_named(parent, name, caller, mode));
  node->attributes.rdev = rdev;
  return snapshot(*node);
}

Result<Attributes> MemoryVolume::make_directory(InodeNumber parent, std::string_view name,
                                                const Caller& caller, std::uint32_t mode) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * node, make_named(parent, name, caller, S_IFDIR | (mode & 07777)));
  return snapshot(*node);
}

Result<Attributes> MemoryVolume::make_symlink(InodeNumber parent, std::string_view name,
                                              const Caller& caller, std::string_view target) {
  std::unique_lock lock(tree_);
  if (target.size() > metadata::symlink_size_bytes_max) return fail(ErrorCode::name_too_long);
  NACRE_ASSIGN(Node * node, make_named(parent, name, caller, S_IFLNK | 0777));
  node->target = target;
  node->attributes.size = target.size();
  return snapshot(*node);
}

Result<Attributes> MemoryVolume::make_unnamed(InodeNumber parent, const Caller& caller,
                                              std::uint32_t mode) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * directory, find_directory(parent));
  NACRE_ASSIGN(Node * node, make(*directory, caller, mode));
  node->lookups = 1;
  return snapshot(*node);
}

Result<Attributes> MemoryVolume::link(InodeNumber inode, InodeNumber parent,
                                      std::string_view name) {
  std::unique_lock lock(tree_);
  NACRE_TRY(check_name(name));
  NACRE_ASSIGN(Node * node, find(inode));
  NACRE_ASSIGN(Node * directory, find_directory(parent));
  if (S_ISDIR(node->attributes.mode) || is_frozen(node->attributes) ||
      is_immutable(directory->attributes)) {
    return fail(ErrorCode::not_permitted);
  }
  if (directory->entries.find(name) != nullptr) return fail(ErrorCode::exists);
  add_entry(*directory, name, *node);
  ++node->attributes.link_count;
  node->attributes.changed = fs::kernel_now();
  ++node->lookups;
  return snapshot(*node);
}

Result<> MemoryVolume::unlink(InodeNumber parent, std::string_view name) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * directory, find_directory(parent));
  NACRE_ASSIGN(Node * node, find_child(*directory, name));
  if (S_ISDIR(node->attributes.mode)) return fail(ErrorCode::is_directory);
  if (is_frozen(directory->attributes) || is_frozen(node->attributes)) {
    return fail(ErrorCode::not_permitted);
  }
  remove_entry(*directory, name, *node);
  --node->attributes.link_count;
  node->attributes.changed = fs::kernel_now();
  drop_if_unused(*node);
  return {};
}

Result<> MemoryVolume::remove_directory(InodeNumber parent, std::string_view name) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * directory, find_directory(parent));
  NACRE_ASSIGN(Node * node, find_child(*directory, name));
  if (!S_ISDIR(node->attributes.mode)) return fail(ErrorCode::not_directory);
  if (is_frozen(directory->attributes) || is_frozen(node->attributes)) {
    return fail(ErrorCode::not_permitted);
  }
  if (!node->entries.cookies.empty()) return fail(ErrorCode::not_empty);
  remove_entry(*directory, name, *node);
  node->attributes.link_count = 0;
  drop_if_unused(*node);
  return {};
}

bool MemoryVolume::is_below(const Node& node, const Node& ancestor) {
  for (const Node* at = &node;;) {
    if (at == &ancestor) return true;
    if (at->attributes.inode == metadata::root_inode) return false;
    at = nodes_.at(at->parent).get();
  }
}

Result<> MemoryVolume::rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                              std::string_view new_name, RenameMode mode) {
  std::unique_lock lock(tree_);
  NACRE_TRY(check_name(new_name));
  NACRE_ASSIGN(Node * from, find_directory(parent));
  NACRE_ASSIGN(Node * to, find_directory(new_parent));
  NACRE_ASSIGN(Node * node, find_child(*from, name));
  const Entries::Entry* taken = to->entries.find(new_name);
  Node* other = taken == nullptr ? nullptr : nodes_.at(taken->inode).get();
  if (mode == RenameMode::no_replace && other != nullptr) return fail(ErrorCode::exists);
  if (mode == RenameMode::exchange && other == nullptr) return fail(ErrorCode::not_found);
  if (is_frozen(from->attributes) || is_frozen(to->attributes) || is_frozen(node->attributes) ||
      (other != nullptr && is_frozen(other->attributes))) {
    return fail(ErrorCode::not_permitted);
  }
  if (node == other) return {};
  const bool is_directory = S_ISDIR(node->attributes.mode);
  if (is_directory && is_below(*to, *node)) return fail(ErrorCode::invalid_argument);
  if (mode == RenameMode::exchange) {
    if (S_ISDIR(other->attributes.mode) && is_below(*from, *other)) {
      return fail(ErrorCode::invalid_argument);
    }
    remove_entry(*to, new_name, *other);
    remove_entry(*from, name, *node);
    add_entry(*from, name, *other);
    other->attributes.changed = fs::kernel_now();
  } else {
    if (other != nullptr) {
      const bool other_is_directory = S_ISDIR(other->attributes.mode);
      if (is_directory && !other_is_directory) return fail(ErrorCode::not_directory);
      if (!is_directory && other_is_directory) return fail(ErrorCode::is_directory);
      if (!other->entries.cookies.empty()) return fail(ErrorCode::not_empty);
      remove_entry(*to, new_name, *other);
      other->attributes.link_count = other_is_directory ? 0 : other->attributes.link_count - 1;
      other->attributes.changed = fs::kernel_now();
      drop_if_unused(*other);
    }
    remove_entry(*from, name, *node);
  }
  add_entry(*to, new_name, *node);
  node->attributes.changed = fs::kernel_now();
  return {};
}

Result<> MemoryVolume::rename_over_whiteout(InodeNumber parent, std::string_view name,
                                            InodeNumber new_parent, std::string_view new_name,
                                            RenameMode mode, const Caller& caller) {
  NACRE_TRY(rename(parent, name, new_parent, new_name, mode));
  NACRE_ASSIGN(const Attributes whiteout, make_node(parent, name, caller, S_IFCHR, 0));
  forget(whiteout.inode, 1);
  return {};
}

Result<std::string> MemoryVolume::read_symlink(InodeNumber inode) {
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  if (!S_ISLNK(node->attributes.mode)) return fail(ErrorCode::invalid_argument);
  return node->target;
}

Result<> MemoryVolume::read_directory(InodeNumber inode, std::uint64_t cookie, bool with_attributes,
                                      const std::function<bool(const DirectoryEntry&)>& take) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * directory, find_directory(inode));
  directory->attributes.accessed = fs::kernel_now();
  const DirectoryEntry self{".", inode, DT_DIR, 1, nullptr};
  const DirectoryEntry parent{"..", directory->parent, DT_DIR, 2, nullptr};
  if (cookie < 1 && !take(self)) return {};
  if (cookie < 2 && !take(parent)) return {};
  const auto& entries = directory->entries.by_cookie;
  for (auto entry = entries.upper_bound(cookie); entry != entries.end(); ++entry) {
    NACRE_ASSIGN(Node * node, find(entry->second.inode));
    const Attributes attributes = snapshot(*node);
    const DirectoryEntry offered{entry->second.name, entry->second.inode,
                                 entry_type(attributes.mode), entry->first,
                                 with_attributes ? &attributes : nullptr};
    if (!take(offered)) break;
    if (with_attributes) ++node->lookups;
  }
  return {};
}

Result<Attributes> MemoryVolume::attributes(InodeNumber inode) {
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  return snapshot(*node);
}

void MemoryVolume::clear_set_id(Node& node, fs::ClearSetId which) {
  if (which == fs::ClearSetId::none || S_ISDIR(node.attributes.mode)) return;
  node.attributes.mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if (which == fs::ClearSetId::all || (node.attributes.mode & S_IXGRP) != 0) {
    node.attributes.mode &= ~static_cast<std::uint32_t>(S_ISGID);
  }
}

Result<Attributes> MemoryVolume::change_attributes(InodeNumber inode,
                                                   const AttributeChange& change) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  Attributes& attributes = node->attributes;
  const bool more_than_times = change.mode || change.uid || change.gid || change.size;
  if (is_immutable(attributes) || (is_frozen(attributes) && more_than_times)) {
    return fail(ErrorCode::not_permitted);
  }
  if (change.size || change.uid || change.gid) node->xattrs.erase(std::string(capability_name));
  if (change.size) {
    if (S_ISDIR(attributes.mode)) return fail(ErrorCode::is_directory);
    resize(*node, *change.size);
    attributes.modified = fs::kernel_now();
  }
  if (change.mode) {
    attributes.mode = (attributes.mode & S_IFMT) | *change.mode;
    if (const auto xattr = node->xattrs.find(fs::acl_access_name); xattr != node->xattrs.end()) {
      NACRE_ASSIGN(fs::Acl acl, fs::decode_acl(xattr->second));
      fs::apply_mode(acl, *change.mode);
      xattr->second = fs::encode_acl(acl);
    }
  }
  if (change.uid) attributes.uid = *change.uid;
  if (change.gid) attributes.gid = *change.gid;
  clear_set_id(*node, change.clear_set_id);
  if (change.accessed) attributes.accessed = *change.accessed;
  if (change.modified) attributes.modified = *change.modified;
  attributes.changed = change.changed ? *change.changed : fs::kernel_now();
  return snapshot(*node);
}

Result<> MemoryVolume::set_flags(InodeNumber inode, std::uint32_t flags) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  node->attributes.flags = flags;
  node->attributes.changed = fs::kernel_now();
  return {};
}

Result<fs::VolumeSpace> MemoryVolume::space() {
  constexpr std::uint64_t pretended_inodes = 1ull << 30;
  return fs::VolumeSpace{.total_bytes = static_cast<std::uint64_t>(pretended_bytes),
                         .free_bytes = room_bytes(),
                         .available_bytes = room_bytes(),
                         .inode_count = inode_count() + pretended_inodes,
                         .free_inodes = pretended_inodes};
}

std::string MemoryVolume::path_of(InodeNumber inode) {
  if (inode == metadata::root_inode) return "/";
  std::shared_lock lock(tree_);
  std::string path;
  while (inode != metadata::root_inode) {
    const auto holds = [inode](const auto& node) {
      return std::any_of(node.second->entries.by_cookie.begin(),
                         node.second->entries.by_cookie.end(),
                         [inode](const auto& entry) { return entry.second.inode == inode; });
    };
    const auto directory = std::find_if(nodes_.begin(), nodes_.end(), holds);
    if (directory == nodes_.end()) return "(inode " + std::to_string(inode.value) + ")";
    for (const auto& [cookie, entry] : directory->second->entries.by_cookie) {
      if (entry.inode != inode) continue;
      path = "/" + entry.name + path;
      break;
    }
    inode = directory->first;
  }
  return path;
}

}  // namespace nacre::tests
