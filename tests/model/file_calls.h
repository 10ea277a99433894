// SPDX-License-Identifier: Apache-2.0
// Calls on one file of a volume, drawn by a seed, carried out on the volume and on a plain array of
// bytes, and shrunk to a few when the two differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace nacre::tests {

enum class CallKind : std::uint8_t {
  write,
  resize,
  punch,
  zero,
  zero_keep_size,
  allocate,
  allocate_keep_size,
  copy,  // within the file, from offset to target
  read,  // and compare; read_all compares every byte
  read_all,
  sync,     // fsync
  commit,   // of everything
  compact,  // merges patches, moves inlined writes and records; commits
  evict,    // another file takes the cache of clean chunks
  remount,
};

struct Call {
  CallKind kind = CallKind::read_all;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t target = 0;  // of a copy
  std::uint32_t fill = 0;    // of a write: which bytes
};
std::string to_string(const Call& call);

// How a volume is made and what its calls are like.
struct FileCallsProfile {
  std::uint32_t chunk_size_bytes = 64u << 10;
  std::uint64_t file_size_max = 600'000;
  std::uint64_t write_size_max = 128'000;
  std::uint64_t cache_budget_bytes = 64u << 20;
  std::uint32_t inline_commit_bytes_max = 128u << 10;
  // Writes keep to the first bytes of the file, all of them at once: a state that is rewritten in
  // place. 0: no such writes.
  std::uint64_t state_size_bytes = 0;
};

std::vector<Call> draw_calls(const FileCallsProfile& profile, std::uint32_t seed,
                             std::size_t count);

// What differed first.
struct Difference {
  std::size_t call = 0;  // its index
  std::string what;
};
// Carries the calls out on a new volume in memory, and reads all at the end. None: all was right.
std::optional<Difference> run_calls(const FileCallsProfile& profile, std::span<const Call> calls);

// A shorter history that still differs, by runs of parts of it. At most run_count_max runs.
std::vector<Call> shrink_calls(const FileCallsProfile& profile, std::vector<Call> calls,
                               std::size_t run_count_max = 400);

}  // namespace nacre::tests
