// SPDX-License-Identifier: Apache-2.0
// The content of a manifest: which table files there are, and which logs still count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "metadata/sealed_fs/file_header.h"

namespace nacre::metadata {

struct LiveTable {
  std::uint32_t family = 0;
  std::uint64_t number = 0;
  std::string smallest, largest;  // keys
  std::uint64_t sequence_max = 0;
  std::optional<FileSalt> salt;  // in format 2
};
struct ManifestContent {
  std::map<std::uint64_t, LiveTable> tables;          // by number
  std::set<std::uint64_t> removed;                    // numbers of tables that it names as removed
  std::map<std::uint32_t, std::string> families;      // by their id
  std::map<std::uint32_t, std::uint64_t> first_logs;  // of each family; older logs do not count
};
// records are the edits, each of which RocksDB wrote as one record. Returns none if one makes no
// sense.
std::optional<ManifestContent> read_manifest_edits(const std::vector<std::string>& records);

// Whether the manifest names the families 1 to count and the first log of each, as each one does
// at its beginning. It does not name RocksDB's own family, 0.
bool has_all_families(const ManifestContent& manifest, std::uint32_t count);

}  // namespace nacre::metadata
