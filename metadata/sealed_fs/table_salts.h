// SPDX-License-Identifier: Apache-2.0
// Makes the manifest name each table by its salt. RocksDB asks for a checksum of each table that it
// makes, and writes it into the manifest with the table's number. It gets the salt of the file, by
// which every page of the table is bound to it. So a program that reads tables without RocksDB can
// tell this table from another branch's table of the same number. RocksDB itself has an id of its
// own for that, which it finds within the table. docs/FORMAT.md, "Which table".
#pragma once

#include <rocksdb/file_checksum.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gpu_engine/base/mutex.h"
#include "metadata/sealed_fs/file_header.h"

namespace nacre::metadata {

// The name of the checksum in the manifest.
inline constexpr std::string_view table_salt_name = "nacre table salt";

// Thread-safe.
class TableSalts final : public rocksdb::FileChecksumGenFactory {
 public:
  // Called for each table of format 2 that is made, before RocksDB asks.
  void note(const std::string& path, const FileSalt& salt) NACRE_EXCLUDES(mutex_);

  std::unique_ptr<rocksdb::FileChecksumGenerator> CreateFileChecksumGenerator(
      const rocksdb::FileChecksumGenContext& context) override NACRE_EXCLUDES(mutex_);
  const char* Name() const override { return "NacreTableSalts"; }

 private:
  // RocksDB asks at once for the salt of a file that it makes, so there are few at a time.
  static constexpr std::size_t noted_count_max = 256;

  Mutex mutex_;
  std::map<std::string, FileSalt> noted_ NACRE_GUARDED_BY(mutex_);
};

// The salt in what the manifest says of a table; none if it says another kind of checksum.
std::optional<FileSalt> table_salt_of(std::string_view checksum_name, std::string_view checksum);

}  // namespace nacre::metadata
