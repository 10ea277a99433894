// SPDX-License-Identifier: Apache-2.0
#include "fs/check/path_finder.h"

#include <optional>

#include <fmt/format.h>

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::Table;

namespace {

class FolderPaths {
 public:
  explicit FolderPaths(const metadata::Database& database) : database_(database) {}

  // The path has no slash at its end; that of the root is "".
  Result<std::string> path_of(InodeNumber folder) {
    std::vector<std::string> names;
    std::set<InodeNumber> seen;
    while (folder != metadata::root_inode) {
      if (const auto known = known_.find(folder); known != known_.end()) {
        return known->second + joined(names);
      }
      NACRE_ASSIGN(auto step, step_up(folder));
      // The parents form a circle, or one of them does not exist.
      if (!step || !seen.insert(folder).second) {
        return fmt::format("(inode {}){}", folder.value, joined(names));
      }
      names.push_back(std::move(step->name));
      folder = step->parent;
    }
    return joined(names);
  }

  void remember(InodeNumber folder, const std::string& path) {
    if (known_.size() < known_count_max) known_.emplace(folder, path);
  }

 private:
  static constexpr std::size_t known_count_max = 100000;
  struct Step {
    InodeNumber parent;
    std::string name;
  };

  static std::string joined(const std::vector<std::string>& names) {
    std::string path;
    for (auto name = names.rbegin(); name != names.rend(); ++name)
      path += "/" + *name;
    return path;
  }

  Result<std::optional<Step>> step_up(InodeNumber folder) {
    NACRE_ASSIGN(const auto value, database_.get(Table::inodes, metadata::inode_key(folder)));
    if (!value) return std::nullopt;
    const auto row = metadata::decode_inode_row(*value);
    if (!row) return std::nullopt;
    std::optional<Step> step;
    const std::string prefix = metadata::dentry_prefix(row->parent);
    NACRE_TRY(database_.scan(Table::dentries, prefix, metadata::prefix_end(prefix),
                             [&](std::string_view key, std::string_view entry) {
                               const auto parts = metadata::decode_dentry_key(key);
                               const auto dentry = metadata::decode_dentry_row(entry);
                               if (!parts || !dentry || dentry->inode != folder) return true;
                               step = Step{row->parent, std::string(parts->name)};
                               return false;
                             }));
    return step;
  }

  const metadata::Database& database_;
  std::map<InodeNumber, std::string> known_;
};

}  // namespace

Result<std::map<InodeNumber, std::vector<std::string>>> find_paths(
    const metadata::Database& database, const std::set<InodeNumber>& inodes,
    std::size_t path_count_max) {
  struct Name {
    InodeNumber inode;
    InodeNumber parent;
    std::string name;
  };
  std::map<InodeNumber, std::vector<std::string>> paths;
  if (inodes.empty()) return paths;
  std::map<InodeNumber, std::size_t> counts;
  std::vector<Name> names;
  NACRE_TRY(
      database.scan(Table::dentries, "", "", [&](std::string_view key, std::string_view value) {
        const auto parts = metadata::decode_dentry_key(key);
        const auto dentry = metadata::decode_dentry_row(value);
        if (parts && dentry && inodes.contains(dentry->inode) &&
            counts[dentry->inode]++ < path_count_max) {
          names.push_back({dentry->inode, parts->parent, std::string(parts->name)});
        }
        return true;
      }));
  FolderPaths folders(database);
  for (const auto& name : names) {
    NACRE_ASSIGN(const auto folder, folders.path_of(name.parent));
    folders.remember(name.parent, folder);
    paths[name.inode].push_back(folder + "/" + name.name);
  }
  if (inodes.contains(metadata::root_inode)) paths[metadata::root_inode] = {"/"};
  return paths;
}

}  // namespace nacre::fs
