// SPDX-License-Identifier: Apache-2.0
// A volume and the plain tree that it must equal: every name, attribute, byte and extended
// attribute of one is compared with the other's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/fs/volume_fixture.h"
#include "tests/model/tree_model.h"

namespace nacre::tests {

class ComparedVolume : public VolumeTest {
 protected:
  // The volume counts it, too, until it is forgotten.
  void count_lookup(const fs::Attributes& attributes) { ++lookups_[attributes.inode]; }

  void compare_attributes(const ModelNode& node, const fs::Attributes& attributes) {
    EXPECT_EQ(attributes.inode, node.inode);
    EXPECT_EQ(attributes.mode, node.mode) << "inode " << node.inode.value;
    EXPECT_EQ(attributes.uid, node.uid) << "inode " << node.inode.value;
    EXPECT_EQ(attributes.gid, node.gid) << "inode " << node.inode.value;
    EXPECT_EQ(attributes.link_count, node.link_count) << "inode " << node.inode.value;
    EXPECT_EQ(attributes.rdev, node.rdev) << "inode " << node.inode.value;
    const std::size_t size = node.is_directory() ? node.children.size() : node.content.size();
    EXPECT_EQ(attributes.size, size) << "inode " << node.inode.value;
  }

  void compare_entries(const ModelNodePtr& directory) {
    std::map<std::string, fs::InodeNumber> entries;
    NACRE_EXPECT_OK(
        volume().read_directory(directory->inode, 2, true, [&](const fs::DirectoryEntry& entry) {
          EXPECT_TRUE(entries.emplace(entry.name, entry.inode).second) << entry.name;
          EXPECT_NE(entry.attributes, nullptr);
          if (entry.attributes == nullptr) return true;
          count_lookup(*entry.attributes);
          const auto node = model_.find(directory, std::string(entry.name));
          if (node) compare_attributes(*node, *entry.attributes);
          return true;
        }));
    EXPECT_EQ(entries.size(), directory->children.size());
    for (const auto& [name, node] : directory->children) {
      EXPECT_EQ(entries[name], node->inode) << name << " in inode " << directory->inode.value;
    }
  }

  void compare_all() {
    for (const ModelNodePtr& directory : model_.directories()) {
      compare_attributes(*directory, stat(directory->inode));
      EXPECT_EQ(find(directory->inode, ".."), directory->parent.lock()->inode);
      volume().forget(directory->parent.lock()->inode, 1);
      compare_entries(directory);
      for (const auto& [name, node] : directory->children)
        compare_node(*node);
      if (HasFailure()) return;
    }
    for (const ModelNodePtr& node : held_)
      compare_node(*node);
  }

  void compare_node(const ModelNode& node) {
    compare_attributes(node, stat(node.inode));
    if (node.is_regular()) {
      EXPECT_TRUE(read(node.inode) == node.content) << "inode " << node.inode.value;
    }
    if (S_ISLNK(node.mode)) {
      EXPECT_EQ(volume().read_symlink(node.inode).value_or("?"), node.content);
    }
    const auto names = volume().list_xattrs(node.inode);
    NACRE_ASSERT_OK(names);
    EXPECT_EQ(names->size(), node.xattrs.size());
    for (const auto& [name, value] : node.xattrs) {
      EXPECT_EQ(volume().get_xattr(node.inode, name).value_or("?"), value) << name;
    }
  }

  TreeModel model_{caller_.uid, caller_.gid};
  std::map<fs::InodeNumber, std::uint64_t> lookups_;
  std::vector<ModelNodePtr> held_;  // without a name, but looked up
};

}  // namespace nacre::tests
