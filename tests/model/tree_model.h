// SPDX-License-Identifier: Apache-2.0
// A directory tree as plain data: what a volume must look like after the same operations. It says
// which answer an operation gets, in the order in which Linux checks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "fs/volume/volume.h"
#include "gpu_engine/base/result.h"

namespace nacre::tests {

struct ModelNode {
  fs::InodeNumber inode;
  std::uint32_t mode = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint32_t link_count = 0;
  std::uint64_t rdev = 0;
  std::string content;  // of a regular file; of a symlink its target
  std::map<std::string, std::string> xattrs;
  std::map<std::string, std::shared_ptr<ModelNode>> children;
  std::weak_ptr<ModelNode> parent;  // of a directory
  bool content_known = true;        // false: a crash left some earlier state of its content
  bool content_durable = true;      // the last commit holds the content
  bool moved = false;               // got another name since the last commit

  bool is_directory() const { return S_ISDIR(mode); }
  bool is_regular() const { return S_ISREG(mode); }
};
using ModelNodePtr = std::shared_ptr<ModelNode>;

class TreeModel {
 public:
  TreeModel(std::uint32_t uid, std::uint32_t gid);

  const ModelNodePtr& root() const { return root_; }
  ModelNodePtr find(const ModelNodePtr& directory, const std::string& name) const;
  std::vector<ModelNodePtr> directories() const;
  std::vector<ModelNodePtr> files() const;  // regular, each once

  // Gives the node a name. The caller has made the node, of any type and with link_count 0. (A file
  // that was made without a name may be linked later.)
  Result<> add(const ModelNodePtr& directory, const std::string& name, const ModelNodePtr& node);
  Result<> unlink(const ModelNodePtr& directory, const std::string& name);
  Result<> remove_directory(const ModelNodePtr& directory, const std::string& name);
  Result<> rename(const ModelNodePtr& from, const std::string& name, const ModelNodePtr& to,
                  const std::string& new_name, fs::RenameMode mode);

  // A deep copy: what the medium holds after a commit of everything, or of one file's content.
  TreeModel snapshot_after_sync_all();
  TreeModel snapshot_after_sync(const ModelNodePtr& file);

 private:
  TreeModel() = default;
  TreeModel copy() const;
  void remove(const ModelNodePtr& directory, const std::string& name);
  void put(const ModelNodePtr& directory, const std::string& name, const ModelNodePtr& node);
  static bool is_below(ModelNodePtr directory, const ModelNodePtr& ancestor);

  ModelNodePtr root_;
};

}  // namespace nacre::tests
