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

// The key with which the volume's names are hashed after the repair.
Result<std::array<Byte, 16>> name_hash_key(const RepairContext& context);

// Plans all changes of names, link counts and lost+found into the context's draft; nothing reaches
// the disk. Keeps each inode and each name of a directory in memory. Not thread-safe; run() is
// called once, and the context outlives the object. Errors: those of the database.
class NameRepair {
 public:
  explicit NameRepair(RepairContext& context) : context_(context) {}
  Result<> run();

 private:
  // One inode: the values of its row, and counts of the rows that name it after the repair.
  struct Node {
    std::uint32_t mode = 0;
    std::uint32_t link_count = 0;
    std::uint32_t name_count = 0;          // entries that name it
    std::uint32_t subdirectory_count = 0;  // entries in it that name directories
    std::uint64_t entry_count = 0;         // entries in it
    std::uint64_t parent = 0;
    std::uint64_t size = 0;
    bool is_listed = false;  // is in the table of orphans
    bool is_made = false;    // it has no row yet
    bool has_fault = false;  // its row must be repaired in any case
  };
  struct Entry {
    std::string key;
    std::uint64_t parent = 0;
    std::uint64_t inode = 0;
  };
  struct Fix {
    std::string key;
    std::string new_key;  // empty: the entry is removed
    std::string value, why;
    std::optional<metadata::InodeNumber> inode;
  };

  // In name_repair.cpp.
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
  // In inode_repair.cpp.
  Result<> finish_inodes();
  Result<> finish(std::uint64_t number, const Node& node);
  Result<> repair_xattrs();

  Node* find(metadata::InodeNumber number) {
    const auto place = nodes_.find(number.value);
    return place == nodes_.end() ? nullptr : &place->second;
  }

  RepairContext& context_;
  std::map<std::uint64_t, Node> nodes_;
  std::map<std::uint64_t, std::vector<Entry>>
      directory_entries_;                   // for each directory, the entries that name it
  std::set<std::uint64_t> erased_orphans_;  // orphans that were being removed and have no row
  std::uint64_t lost_found_ = 0;
};

}  // namespace nacre::fs
