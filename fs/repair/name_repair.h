// SPDX-License-Identifier: Apache-2.0
// The state of the repair of names. Only for name_repair.cpp and inode_repair.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/repair/repair_parts.h"

namespace nacre::fs {

// The key that the volume's names are hashed with, as it will be.
Result<std::array<Byte, 16>> name_hash_key(const RepairContext& context);

class NameRepair {
 public:
  explicit NameRepair(RepairContext& context) : context_(context) {}
  Result<> run();

 private:
  // One inode: what its row says, what the other rows will say when the repair is done.
  struct Node {
    std::uint32_t mode = 0;
    std::uint32_t link_count = 0;
    std::uint32_t name_count = 0;          // entries that lead to it
    std::uint32_t subdirectory_count = 0;  // entries in it that lead to directories
    std::uint64_t entry_count = 0;         // entries in it
    std::uint64_t parent = 0;
    std::uint64_t size = 0;
    bool is_listed = false;  // as an orphan
    bool is_made = false;    // it has no row yet
    bool has_fault = false;  // its row must be put right in any case
  };
  struct Entry {
    std::string key;
    std::uint64_t parent = 0;
    std::uint64_t inode = 0;
  };
  struct Fix {
    std::string key;
    std::string new_key;  // empty: the entry goes
    std::string value, why;
    std::optional<metadata::InodeNumber> inode;
  };

  // name_repair.cpp
  Result<> read_inodes();
  Result<> read_orphans();
  Result<> make_missing_inodes();
  Result<> read_entries();
  Result<> apply(const Fix& fix);
  Result<> forget_entry(const Fix& fix);
  Result<> remove_entry(const Entry& entry, const std::string& why);
  Result<> choose_directory_names();
  Result<> break_circles();
  bool is_orphan(const Node& node) const;
  Result<> name_the_nameless();
  Result<> put_into_lost_found(std::uint64_t number);
  Result<std::uint64_t> lost_found();
  Result<std::uint64_t> next_inode();
  // inode_repair.cpp
  Result<> finish_inodes();
  Result<> finish(std::uint64_t number, const Node& node);
  Result<> repair_xattrs();

  Node* find(metadata::InodeNumber number) {
    const auto place = nodes_.find(number.value);
    return place == nodes_.end() ? nullptr : &place->second;
  }

  RepairContext& context_;
  std::map<std::uint64_t, Node> nodes_;
  std::map<std::uint64_t, std::vector<Entry>> directory_entries_;  // of each directory, to it
  std::set<std::uint64_t> erased_orphans_;  // being removed, of which no row is left
  std::uint64_t lost_found_ = 0;
};

}  // namespace nacre::fs
