// SPDX-License-Identifier: Apache-2.0
// What RocksDB is told. What its files look like is set here and not left to its defaults, which
// differ from version to version: a volume goes from one system to another, and back.
// docs/FORMAT.md ("RocksDB's files") says what the files hold; tests/metadata/pinned_files_test.cpp
// checks both.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <vector>

#include "metadata/tables/database.h"

namespace nacre::metadata {

// Without listeners and info log.
rocksdb::DBOptions database_options(const DatabaseOptions& options, rocksdb::Env* env);

// Of the default family, then of each Table in order. All share one block cache.
std::vector<rocksdb::ColumnFamilyDescriptor> family_descriptors(const DatabaseOptions& options);

}  // namespace nacre::metadata
