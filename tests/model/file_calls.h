// SPDX-License-Identifier: Apache-2.0
// Calls on two files, drawn by a seed, carried out on the files and on plain arrays of bytes, and
// shrunk to a few when the two differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/model/tested_files.h"

namespace nacre::tests {

enum class CallKind : std::uint8_t {
  write,
  resize,
  punch,
  zero,
  zero_keep_size,
  allocate,
  allocate_keep_size,
  copy,  // from offset to target, within the file or to the other one
  read,  // and compare; read_all compares every byte
  read_all,
  sync,     // fsync
  commit,   // of everything
  flush,    // of what is dirty, without a commit
  tidy,     // merges patches and moves inlined writes, without a commit
  compact,  // does that, moves records and commits
  evict,    // a third file takes the cache of clean chunks
  remount,
};

struct Call {
  CallKind kind = CallKind::read_all;
  unsigned file = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  unsigned to_file = 0;  // of a copy, as target
  std::uint64_t target = 0;
  std::uint32_t fill = 0;  // of a write: which bytes
};
std::string to_string(const Call& call);

enum class TestedLevel : std::uint8_t {
  data,  // files without a volume above the cache; flush and tidy have an effect only here
  volume,
};

// The level that is tested, and the kind of calls.
struct FileCallsProfile {
  TestedLevel level = TestedLevel::volume;
  TestedFilesOptions options = {};
  // While the calls are made, another thread merges and compacts time and again.
  bool is_tended = false;
  std::uint64_t file_size_max = 600'000;
  std::uint64_t write_size_max = 128'000;
  // If not 0: mostly a file holds a state of this many bytes, which is rewritten in place dozens of
  // times in a row. 0: that happens seldom.
  std::uint64_t state_size_bytes = 0;
};

std::vector<Call> draw_calls(const FileCallsProfile& profile, std::uint32_t seed,
                             std::size_t count);

// The first difference.
struct Difference {
  std::size_t call = 0;  // its index
  std::string what;
};
// Carries the calls out on new files in memory, and reads all at the end. None: all was right.
std::optional<Difference> run_calls(const FileCallsProfile& profile, std::span<const Call> calls);

// A shorter history that still differs, by runs of parts of it. At most run_count_max runs.
std::vector<Call> shrink_calls(const FileCallsProfile& profile, std::vector<Call> calls,
                               std::size_t run_count_max = 400);

}  // namespace nacre::tests
