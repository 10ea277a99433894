// SPDX-License-Identifier: Apache-2.0
// What a MemoryBacking and its open files share: folders and files, and what becomes of each
// operation.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/memory_backing.h"
#include "tests/support/memory_file.h"
#include "tests/support/memory_folder.h"

namespace nacre::tests {

inline constexpr std::uint64_t unlimited_bytes = ~0ull;
// A look at names or sizes. It is not numbered, and no failure can be injected.
inline constexpr std::uint32_t operation_look = 0;

// The decision about an operation.
struct Admission {
  std::optional<Error> error;
  bool takes_effect = true;
  bool is_partial = false;  // a write or read takes only the first half of its bytes
  bool is_flipped = false;  // a read returns one flipped bit
};

struct MemoryBacking::State {
  mutable std::mutex mutex;
  std::shared_ptr<MemoryFolder> root = std::make_shared<MemoryFolder>();
  std::uint64_t change_count = 0;
  std::map<std::uint32_t, std::uint64_t> operation_counts;
  std::uint64_t fail_at = ~0ull;
  bool stopped = false;
  bool read_only = false;
  std::uint64_t capacity_bytes = unlimited_bytes;
  std::uint64_t quota_bytes = unlimited_bytes;
  std::atomic<std::uint64_t> open_file_count = 0;
  std::vector<InjectedFailure> failures;
  std::shared_ptr<const Watcher> watcher;

  // Called without the mutex.
  void announce(std::uint32_t operation, std::string_view path) const;
  // The following functions are called with the mutex held.
  Admission admit(std::uint32_t operation, std::string_view path);
  Result<MemoryFolder*> folder(std::string_view name) const;
  Result<FolderEntry> entry(std::string_view path) const;
  Result<void> check_space(const MemoryFile& file, std::uint64_t size) const;
};

// Makes an open file of this state, for file, which was opened under path.
std::unique_ptr<metadata::BackingFile> open_memory_file(std::shared_ptr<MemoryBacking::State> state,
                                                        std::shared_ptr<MemoryFile> file,
                                                        std::string path, bool writable);

}  // namespace nacre::tests
