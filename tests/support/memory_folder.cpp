// SPDX-License-Identifier: Apache-2.0
// See memory_folder.h and, for the model, memory_backing.h.
#include "tests/support/memory_folder.h"

namespace nacre::tests {

namespace {

void apply_change(FolderEntries& entries, const MemoryFolder::Change& change) {
  for (const auto& [name, entry] : change) {
    if (entry) {
      entries[name] = entry;
    } else {
      entries.erase(name);
    }
  }
}

}  // namespace

const FolderEntry* MemoryFolder::find(std::string_view name) const {
  const auto at = now_.find(name);
  return at == now_.end() ? nullptr : &at->second;
}

void MemoryFolder::change(Change change) {
  apply_change(now_, change);
  pending_.push_back(std::move(change));
}

void MemoryFolder::sync() {
  for (const Change& change : pending_)
    apply_change(durable_, change);
  pending_.clear();
}

void MemoryFolder::place(const std::string& name, FolderEntry entry) {
  change({{name, std::move(entry)}});
  sync();
}

std::shared_ptr<MemoryFolder> MemoryFolder::survive(Survival survival,
                                                    std::mt19937_64& random) const {
  std::size_t kept = pending_.size();
  if (survival == Survival::nothing) kept = 0;
  if (survival == Survival::random) kept = random() % (pending_.size() + 1);
  FolderEntries entries = durable_;
  for (std::size_t i = 0; i < kept; ++i)
    apply_change(entries, pending_[i]);
  for (auto& [name, entry] : entries) {
    if (entry.file) {
      entry.file = std::make_shared<MemoryFile>(entry.file->survive(survival, random));
    } else {
      entry.folder = entry.folder->survive(survival, random);
    }
  }
  return std::make_shared<MemoryFolder>(std::move(entries));
}

bool MemoryFolder::names(const MemoryFile& file) const {
  for (const auto& [name, entry] : now_) {
    if (entry.file.get() == &file || (entry.folder && entry.folder->names(file))) return true;
  }
  return false;
}

std::uint64_t MemoryFolder::used_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [name, entry] : now_) {
    sum += entry.file ? entry.file->size() : entry.folder->used_bytes();
  }
  return sum;
}

void MemoryFolder::list_files(const std::string& prefix, std::vector<std::string>& paths) const {
  for (const auto& [name, entry] : now_) {
    if (entry.file) {
      paths.push_back(prefix + name);
    } else {
      entry.folder->list_files(prefix + name + "/", paths);
    }
  }
}

}  // namespace nacre::tests
