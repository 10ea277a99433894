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
  std::string table;          // for tables: only this one; empty: all
  std::uint64_t segment = 0;  // for segment and record: the segment's number
  std::uint64_t offset = 0;   // for record: where it begins
  bool content = false;       // for record: the plain bytes instead of a description
};

// These need no key.
Result<> dump_document(const std::string& volume, std::string_view name);  // superblock, keyring
Result<> dump_database_files(const std::string& volume);
Result<> dump_segment(const DumpArguments& arguments);
// Prints the clear header; with a key also what is sealed.
Result<> dump_record(const DumpArguments& arguments);
// This needs a key.
Result<> dump_tables(const DumpArguments& arguments);

}  // namespace nacre::tools
