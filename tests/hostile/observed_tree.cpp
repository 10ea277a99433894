// SPDX-License-Identifier: Apache-2.0
#include "tests/hostile/observed_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace nacre::tests {

using fs::InodeNumber;

namespace {

class Observer {
 public:
  Observer(fs::Volume& volume, std::uint32_t chunk_size_bytes)
      : volume_(volume), chunk_size_bytes_(chunk_size_bytes) {}

  ObservedTree run() {
    look_at(metadata::root_inode, "");
    return std::move(tree_);
  }

 private:
  // Notes the fact. Returns whether it could be read.
  template <typename T, typename ToText>
  bool note(const std::string& key, const Result<T>& result, const ToText& to_text) {
    if (!result) {
      tree_.codes.insert(result.error().code);
      tree_.facts[key] = std::nullopt;
      return false;
    }
    tree_.facts[key] = to_text(*result);
    return true;
  }

  void look_at(InodeNumber inode, const std::string& path) {
    const auto attributes = volume_.attributes(inode);
    const bool known = note(path + "|attributes", attributes, [&](const fs::Attributes& a) {
      return fmt::format("inode {} mode {:o} owner {}:{} links {} flags {} size {} changed {}.{}",
                         a.inode.value, a.mode, a.uid, a.gid, a.link_count, a.flags, a.size,
                         a.modified.seconds, a.modified.nanoseconds);
    });
    if (!known) return;
    look_at_xattrs(inode, path);
    if (S_ISLNK(attributes->mode)) {
      note(path + "|target", volume_.read_symlink(inode), [](const std::string& s) { return s; });
    } else if (S_ISREG(attributes->mode)) {
      look_at_content(inode, path, attributes->size);
    } else if (S_ISDIR(attributes->mode)) {
      look_at_entries(inode, path);
    }
  }

  void look_at_xattrs(InodeNumber inode, const std::string& path) {
    const auto names = volume_.list_xattrs(inode);
    if (!note(path + "|xattrs", names, join)) return;
    for (const auto& name : *names) {
      note(path + "|xattr " + name, volume_.get_xattr(inode, name),
           [](const std::string& value) { return value; });
    }
  }

  void look_at_content(InodeNumber inode, const std::string& path, std::uint64_t size) {
    std::string bytes;
    for (std::uint64_t at = 0; at < size; at += chunk_size_bytes_) {
      bytes.assign(std::min<std::uint64_t>(chunk_size_bytes_, size - at), '\0');
      const auto count = volume_.read(
          inode, at, MutableByteView(reinterpret_cast<Byte*>(bytes.data()), bytes.size()));
      note(fmt::format("{}|chunk {}", path, at / chunk_size_bytes_), count,
           [&](std::size_t got) { return bytes.substr(0, got); });
    }
  }

  void look_at_entries(InodeNumber inode, const std::string& path) {
    std::vector<std::pair<std::string, InodeNumber>> children;
    const auto listed =
        volume_.read_directory(inode, 0, false, [&](const fs::DirectoryEntry& entry) {
          if (entry.name != "." && entry.name != "..") {
            children.emplace_back(entry.name, entry.inode);
          }
          return true;
        });
    std::sort(children.begin(), children.end());
    if (!listed) {
      tree_.codes.insert(listed.error().code);
      tree_.facts[path + "|names"] = std::nullopt;
      return;
    }
    std::string names;
    for (const auto& [name, child] : children)
      names += fmt::format("{}={} ", name, child.value);
    tree_.facts[path + "|names"] = names;
    for (const auto& [name, child] : children)
      look_at(child, path + "/" + name);
  }

  static std::string join(std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    std::string text;
    for (const auto& name : names)
      text += name + " ";
    return text;
  }

  fs::Volume& volume_;
  const std::uint32_t chunk_size_bytes_;
  ObservedTree tree_;
};

bool is_refused(const ObservedTree& tree, const std::string& key) {
  const auto fact = tree.facts.find(key);
  return fact != tree.facts.end() && !fact->second;
}

// Whether something above the fact, or its own inode, could not be read.
bool is_explained(const ObservedTree& tree, const std::string& key) {
  std::string path = key.substr(0, key.find('|'));
  if (is_refused(tree, path + "|attributes") || is_refused(tree, path + "|xattrs")) return true;
  while (!path.empty()) {
    path.resize(path.rfind('/'));
    if (is_refused(tree, path + "|attributes") || is_refused(tree, path + "|names")) return true;
  }
  return false;
}

}  // namespace

ObservedTree observe(fs::Volume& volume, std::uint32_t chunk_size_bytes) {
  return Observer(volume, chunk_size_bytes).run();
}

std::string wrong_fact(const ObservedTree& found, const ObservedTree& sound) {
  for (const auto& [key, value] : found.facts) {
    const auto expected = sound.facts.find(key);
    if (expected == sound.facts.end()) return key + " was never made";
    if (value && value != expected->second) return key + " is another";
  }
  for (const auto& [key, value] : sound.facts) {
    if (!found.facts.contains(key) && !is_explained(found, key)) {
      return key + " is gone, and nothing said so";
    }
  }
  return {};
}

}  // namespace nacre::tests
