// SPDX-License-Identifier: Apache-2.0
// One folder of a MemoryBacking: its names now, those that are durable, and the changes between the
// two, in order. Not thread-safe: the lock of the MemoryBacking covers it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/memory_file.h"

namespace nacre::tests {

class MemoryFolder;

// A name's meaning: one of the two, or neither for a name that is gone.
struct FolderEntry {
  std::shared_ptr<MemoryFile> file;
  std::shared_ptr<MemoryFolder> folder;
  explicit operator bool() const { return file || folder; }
};
using FolderEntries = std::map<std::string, FolderEntry, std::less<>>;

class MemoryFolder {
 public:
  // A change of several names at once.
  using Change = std::vector<std::pair<std::string, FolderEntry>>;

  MemoryFolder() = default;
  explicit MemoryFolder(FolderEntries durable) : now_(durable), durable_(std::move(durable)) {}

  const FolderEntries& entries() const { return now_; }
  const FolderEntry* find(std::string_view name) const;
  void change(Change change);
  void sync();
  // Sets an entry durably, and makes all earlier changes durable.
  void place(const std::string& name, FolderEntry entry);

  // The folder as power loss leaves it, with all files and folders below.
  std::shared_ptr<MemoryFolder> survive(Survival survival, std::mt19937_64& random) const;
  // Whether a name in it or below leads to the file.
  bool names(const MemoryFile& file) const;
  // The sum of the sizes of all files below.
  std::uint64_t used_bytes() const;
  // Appends the paths of all files below, each after prefix.
  void list_files(const std::string& prefix, std::vector<std::string>& paths) const;

 private:
  FolderEntries now_;
  FolderEntries durable_;
  std::vector<Change> pending_;  // lead from durable_ to now_
};

}  // namespace nacre::tests
