// SPDX-License-Identifier: Apache-2.0
// The parts of `nacre dump`: each prints one structure of the format as it lies on disk.
#pragma once

#include <cstdint>
#include <string>

#include "gpu_engine/base/result.h"
#include "tools/cli/secret_source.h"

namespace nacre::tools {

struct DumpArguments {
  std::string volume;
  SecretOptions secret;
  std::string table;          // of tables: one of them; empty: all
  std::uint64_t segment = 0;  // of segment, record: its number
  std::uint64_t offset = 0;   // of record
  bool content = false;       // of record: its plain bytes instead of a description
};

// Without keys.
Result<> dump_document(const std::string& volume, std::string_view name);  // superblock, keyring
Result<> dump_database_files(const std::string& volume);
Result<> dump_segment(const DumpArguments& arguments);
// The clear header; with a key also what is sealed.
Result<> dump_record(const DumpArguments& arguments);
// With keys.
Result<> dump_tables(const DumpArguments& arguments);

}  // namespace nacre::tools
