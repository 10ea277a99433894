// SPDX-License-Identifier: Apache-2.0
// RocksDB's options. All options that affect its files are set here and not left to defaults, which
// differ between versions, because a volume may move between systems. docs/FORMAT.md ("RocksDB's
// files") describes the files; tests/metadata/pinned_files_test.cpp checks both.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <vector>

#include "metadata/tables/database.h"

namespace nacre::metadata {

// The options without listeners and info log.
rocksdb::DBOptions database_options(const DatabaseOptions& options, rocksdb::Env* env);

// The default family, then each Table in order. All share one block cache.
std::vector<rocksdb::ColumnFamilyDescriptor> family_descriptors(const DatabaseOptions& options);

}  // namespace nacre::metadata
