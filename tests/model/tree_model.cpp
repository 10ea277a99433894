// SPDX-License-Identifier: Apache-2.0
// A tree of files in plain memory, as POSIX has it.
#include "tests/model/tree_model.h"

#include <algorithm>
#include <functional>
#include <set>

namespace nacre::tests {

using fs::RenameMode;

TreeModel::TreeModel(std::uint32_t uid, std::uint32_t gid) : root_(std::make_shared<ModelNode>()) {
  root_->inode = metadata::root_inode;
  root_->mode = S_IFDIR | 0755;
  root_->uid = uid;
  root_->gid = gid;
  root_->link_count = 2;
  root_->parent = root_;
}

ModelNodePtr TreeModel::find(const ModelNodePtr& directory, const std::string& name) const {
  const auto found = directory->children.find(name);
  return found == directory->children.end() ? nullptr : found->second;
}

std::vector<ModelNodePtr> TreeModel::directories() const {
  std::vector<ModelNodePtr> found = {root_};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const ModelNodePtr directory = found[i];
    for (const auto& [name, node] : directory->children) {
      if (node->is_directory()) found.push_back(node);
    }
  }
  return found;
}

std::vector<ModelNodePtr> TreeModel::files() const {
  std::set<ModelNodePtr> found;
  for (const ModelNodePtr& directory : directories()) {
    for (const auto& [name, node] : directory->children) {
      if (node->is_regular()) found.insert(node);
    }
  }
  return {found.begin(), found.end()};
}

void TreeModel::put(const ModelNodePtr& directory, const std::string& name,
                    const ModelNodePtr& node) {
  directory->children[name] = node;
  if (node->is_directory()) {
    node->link_count = 2 + static_cast<std::uint32_t>(std::count_if(
                               node->children.begin(), node->children.end(),
                               [](const auto& child) { return child.second->is_directory(); }));
    node->parent = directory;
    ++directory->link_count;
  } else {
    ++node->link_count;
  }
}

void TreeModel::remove(const ModelNodePtr& directory, const std::string& name) {
  const ModelNodePtr node = directory->children.at(name);
  directory->children.erase(name);
  if (node->is_directory()) {
    node->link_count = 0;
    --directory->link_count;
  } else {
    --node->link_count;
  }
}

Result<> TreeModel::add(const ModelNodePtr& directory, const std::string& name,
                        const ModelNodePtr& node) {
  if (find(directory, name)) return fail(ErrorCode::exists);
  if (directory->link_count == 0) return fail(ErrorCode::not_found);
  put(directory, name, node);
  return {};
}

Result<> TreeModel::unlink(const ModelNodePtr& directory, const std::string& name) {
  const ModelNodePtr node = find(directory, name);
  if (!node) return fail(ErrorCode::not_found);
  if (node->is_directory()) return fail(ErrorCode::is_directory);
  remove(directory, name);
  return {};
}

Result<> TreeModel::remove_directory(const ModelNodePtr& directory, const std::string& name) {
  const ModelNodePtr node = find(directory, name);
  if (!node) return fail(ErrorCode::not_found);
  if (!node->is_directory()) return fail(ErrorCode::not_directory);
  if (!node->children.empty()) return fail(ErrorCode::not_empty);
  remove(directory, name);
  return {};
}

bool TreeModel::is_below(ModelNodePtr directory, const ModelNodePtr& ancestor) {
  while (true) {
    if (directory == ancestor) return true;
    const ModelNodePtr parent = directory->parent.lock();
    if (!parent || parent == directory) return false;
    directory = parent;
  }
}

Result<> TreeModel::rename(const ModelNodePtr& from, const std::string& name,
                           const ModelNodePtr& to, const std::string& new_name, RenameMode mode) {
  const ModelNodePtr node = find(from, name);
  if (!node) return fail(ErrorCode::not_found);
  const ModelNodePtr replaced = find(to, new_name);
  if (replaced && mode == RenameMode::no_replace) return fail(ErrorCode::exists);
  if (!replaced && mode == RenameMode::exchange) return fail(ErrorCode::not_found);
  if (node == replaced) return {};
  const bool exchange = mode == RenameMode::exchange;
  if (node->is_directory() && is_below(to, node)) return fail(ErrorCode::invalid_argument);
  if (exchange && replaced->is_directory() && is_below(from, replaced)) {
    return fail(ErrorCode::invalid_argument);
  }
  if (to->link_count == 0) return fail(ErrorCode::not_found);
  if (replaced && !exchange) {
    if (node->is_directory() && !replaced->is_directory()) return fail(ErrorCode::not_directory);
    if (!node->is_directory() && replaced->is_directory()) return fail(ErrorCode::is_directory);
    if (!replaced->children.empty()) return fail(ErrorCode::not_empty);
  }
  remove(from, name);
  if (replaced) remove(to, new_name);
  put(to, new_name, node);
  node->moved = true;
  if (exchange) {
    put(from, name, replaced);
    replaced->moved = true;
  }
  return {};
}

TreeModel TreeModel::copy() const {
  std::map<ModelNodePtr, ModelNodePtr> copies;
  const std::function<ModelNodePtr(const ModelNodePtr&)> copy_node = [&](const ModelNodePtr& node) {
    auto& made = copies[node];
    if (made) return made;
    made = std::make_shared<ModelNode>(*node);
    for (auto& [name, child] : made->children) {
      child = copy_node(child);
      if (child->is_directory()) child->parent = copies[node];
    }
    return copies[node];
  };
  TreeModel tree;
  tree.root_ = copy_node(root_);
  tree.root_->parent = tree.root_;
  return tree;
}

TreeModel TreeModel::snapshot_after_sync_all() {
  for (const ModelNodePtr& file : files()) {
    file->content_durable = true;
    file->moved = false;
  }
  return copy();
}

TreeModel TreeModel::snapshot_after_sync(const ModelNodePtr& synced) {
  for (const ModelNodePtr& file : files()) {
    if (file == synced || file->moved) file->content_durable = true;
    file->moved = false;
  }
  TreeModel tree = copy();
  for (const ModelNodePtr& file : tree.files())
    file->content_known = file->content_durable;
  return tree;
}

}  // namespace nacre::tests
