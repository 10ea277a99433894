// SPDX-License-Identifier: Apache-2.0
// What tests of the sealed file system and of the tables share: keys, and a database in memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "metadata/keys/keys.h"
#include "metadata/tables/database.h"
#include "tests/support/format_under_test.h"
#include "tests/support/memory_backing.h"

namespace nacre::tests {

// Keys of a volume whose id is sixteen times `id`; equal ids give equal keys.
std::shared_ptr<const metadata::KeyTree> make_keys(
    Byte id = 7, metadata::EpochFormat format = format_under_test());

// Small buffers, so that few rows reach every kind of file.
metadata::DatabaseOptions small_options();

// Opens a database that must open. An error fails the test, and the result is null.
std::unique_ptr<metadata::Database> open_database(std::shared_ptr<MemoryBacking> backing,
                                                  metadata::DatabaseOptions options);
std::unique_ptr<metadata::Database> create_database(std::shared_ptr<MemoryBacking> backing);

// Freezes and commits; true when the group is durable.
bool commit(metadata::Database& database, bool sync = true);

// The paths under db/ whose names end or begin with this text.
std::vector<std::string> files_ending(const MemoryBacking& backing, std::string_view suffix);
std::vector<std::string> files_beginning(const MemoryBacking& backing, std::string_view prefix);

}  // namespace nacre::tests
