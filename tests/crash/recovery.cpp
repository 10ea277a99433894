// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/recovery.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fs/check/checker.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/open_volume.h"

namespace nacre::tests {

using fs::InodeNumber;

std::string entry_text(const EntryText& entry) {
  std::string text = fmt::format("{} inode {} mode {:o} owner {}:{} links {}",
                                 entry.path.empty() ? "/" : entry.path, entry.inode.value,
                                 entry.mode, entry.uid, entry.gid, entry.link_count);
  if (S_ISDIR(entry.mode)) text += fmt::format(" entries {}", entry.entry_count);
  if (S_ISLNK(entry.mode)) text += " -> " + entry.target;
  for (const auto& [name, value] : entry.xattrs)
    text += fmt::format(" {}={}", name, value);
  return text + "\n";
}

namespace {

class TreeReader {
 public:
  explicit TreeReader(fs::Volume& volume) : volume_(volume) {}

  RecoveredTree read() {
    read_node(metadata::root_inode, "");
    return std::move(tree_);
  }

 private:
  void read_node(InodeNumber inode, const std::string& path) {
    const auto attributes = volume_.attributes(inode);
    NACRE_ASSERT_OK(attributes);
    EntryText entry{.path = path,
                    .inode = inode,
                    .mode = attributes->mode,
                    .uid = attributes->uid,
                    .gid = attributes->gid,
                    .link_count = attributes->link_count};
    if (S_ISLNK(entry.mode)) {
      const auto target = volume_.read_symlink(inode);
      NACRE_ASSERT_OK(target);
      entry.target = *target;
    }
    const auto names = volume_.list_xattrs(inode);
    NACRE_ASSERT_OK(names);
    for (const std::string& name : *names)
      entry.xattrs[name] = volume_.get_xattr(inode, name).value_or("(unreadable)");
    if (S_ISREG(entry.mode)) read_content(inode, attributes->size);
    if (!S_ISDIR(entry.mode)) {
      tree_.names += entry_text(entry);
      return;
    }
    entry.entry_count = attributes->size;
    tree_.names += entry_text(entry);
    read_entries(inode, path);
  }

  void read_entries(InodeNumber inode, const std::string& path) {
    std::map<std::string, InodeNumber> children;
    NACRE_EXPECT_OK(volume_.read_directory(inode, 0, false, [&](const fs::DirectoryEntry& entry) {
      if (entry.name == "." || entry.name == "..") return true;
      EXPECT_TRUE(children.emplace(entry.name, entry.inode).second) << entry.name << " twice";
      return true;
    }));
    for (const auto& [name, child] : children)
      read_node(child, path + "/" + name);
  }

  void read_content(InodeNumber inode, std::uint64_t size) {
    std::string content(size, '\0');
    const auto count = volume_.read(
        inode, 0, MutableByteView(reinterpret_cast<Byte*>(content.data()), content.size()));
    NACRE_ASSERT_OK(count);
    EXPECT_EQ(*count, size);
    tree_.contents[inode] = std::move(content);
  }

  fs::Volume& volume_;
  RecoveredTree tree_;
};

// Names that the script never uses.
void expect_takes_changes(fs::Volume& volume) {
  constexpr std::string_view name = "made after the crash";
  const auto file = volume.make_node(metadata::root_inode, name, {}, S_IFREG | 0600, 0);
  NACRE_ASSERT_OK(file);
  const std::string content = History::bytes_of(1, 0, 20'000);
  NACRE_EXPECT_OK(volume.write(file->inode, 0, as_bytes(content), {}));
  NACRE_EXPECT_OK(volume.sync_all());
}

}  // namespace

RecoveredTree read_tree(fs::Volume& volume) {
  return TreeReader(volume).read();
}

void expect_clean(const std::shared_ptr<MemoryBacking>& backing, std::uint32_t chunk_size_bytes,
                  bool deep) {
  metadata::VolumeKeys volume;
  volume.keys = test_keys();
  volume.superblock.chunk_size_bytes = chunk_size_bytes;
  volume.keyring.generation = 1;
  auto engine = engine::Engine::create({.thread_count = 1});
  NACRE_ASSERT_OK(engine);
  const auto report = fs::check_volume(backing, volume, **engine, {.deep = deep}, {});
  NACRE_ASSERT_OK(report);
  EXPECT_TRUE(report->structure && (!deep || (report->records && report->scrub)))
      << "a check did not run";
  for (const fs::Finding& finding : report->findings.findings()) {
    if (finding.severity != fs::Severity::error) continue;
    ADD_FAILURE() << "the checker finds: " << to_string(finding.verdict) << ": " << finding.file
                  << ": " << finding.what;
  }
}

void expect_recovery(const std::shared_ptr<MemoryBacking>& backing,
                     const fs::VolumeOptions& options, const History& history,
                     const Promises& promises, bool and_goes_on) {
  const std::uint32_t chunk_size_bytes = options.store.chunk_size_bytes;
  expect_clean(backing, chunk_size_bytes, true);
  auto engine = engine::Engine::create({.thread_count = 1});
  NACRE_ASSERT_OK(engine);
  Result<OpenVolume> volume =
      fs::Mounted::open(backing, test_keys(), 1, std::move(*engine), options);
  NACRE_ASSERT_OK(volume);
  const RecoveredTree tree = read_tree(**volume);
  EXPECT_EQ(history.objection(tree, promises), "");
  for (const InodeNumber inode : history.files()) {
    if (tree.contents.contains(inode)) continue;
    EXPECT_FALSE((*volume)->lookup_inode(inode)) << "a file without a name: " << inode.value;
  }
  if (!and_goes_on) return;
  expect_takes_changes(**volume);
  NACRE_EXPECT_OK(volume->mounted().close());
  volume->reset();
  expect_clean(backing, chunk_size_bytes, true);
}

}  // namespace nacre::tests
