// SPDX-License-Identifier: Apache-2.0
// Two files that calls are carried out on: those of a volume, or their data alone, with nothing
// above the file cache (where a flush and the merging of a chunk are calls of their own).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fs/volume/volume.h"
#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::tests {

inline constexpr unsigned tested_file_count = 2;

struct TestedFilesOptions {
  std::uint32_t chunk_size_bytes = 64u << 10;
  std::uint64_t cache_budget_bytes = 64u << 20;
  std::uint64_t dirty_budget_bytes = 4u << 20;
  std::uint32_t inline_commit_bytes_max = 128u << 10;
  unsigned engine_thread_count = 1;
  bool background_compaction = false;  // and merging, whenever nothing happens for a moment
};

// The calls are made on one thread, tend() on another at the same time. Files are named by their
// index.
class TestedFiles {
 public:
  virtual ~TestedFiles() = default;  // without close(): as after a crash
  virtual Result<> open() = 0;       // again after close()
  virtual Result<> close() = 0;

  virtual Result<std::uint64_t> size(unsigned file) = 0;
  virtual Result<std::size_t> read(unsigned file, std::uint64_t offset, MutableByteView out) = 0;
  virtual Result<> write(unsigned file, std::uint64_t offset, ByteView bytes) = 0;
  virtual Result<> resize(unsigned file, std::uint64_t size) = 0;
  virtual Result<> allocate(unsigned file, fs::AllocateMode mode, std::uint64_t offset,
                            std::uint64_t size) = 0;
  // Like copy_file_range(2): returns how many bytes were copied.
  virtual Result<std::uint64_t> copy(unsigned from, std::uint64_t offset, unsigned to,
                                     std::uint64_t target, std::uint64_t size) = 0;

  virtual Result<> sync(unsigned file) = 0;
  virtual Result<> commit() = 0;
  virtual Result<> compact() = 0;  // all that is worth it; commits
  // Turns dirty bytes into rows and records, without a commit. A volume does so by itself only.
  virtual Result<> flush() = 0;
  // Merges every chunk that is in pieces, and turns inlined writes into records, without a commit.
  // A volume does so by itself only.
  virtual Result<> tidy() = 0;
  // Reads other files, so that they take the cache of clean chunks.
  virtual Result<> evict() = 0;
  // Does the work of a background thread, during any other call. Called on a thread of its own.
  virtual Result<> tend() = 0;
};

std::unique_ptr<TestedFiles> make_volume_files(const TestedFilesOptions& options);
std::unique_ptr<TestedFiles> make_data_files(const TestedFilesOptions& options);

}  // namespace nacre::tests
