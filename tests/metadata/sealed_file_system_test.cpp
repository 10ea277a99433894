// SPDX-License-Identifier: Apache-2.0
// The file system that RocksDB is given: what it does to files beyond sealing them.
#include "metadata/sealed_fs/sealed_file_system.h"

#include <gtest/gtest.h>

#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

// If a write of the manifest fails, RocksDB removes the files that the write was to name. So that
// write must never reach the medium later. And files that the manifest on the medium may name must
// stay until there is another manifest.
TEST(SealedFileSystem, a_manifest_whose_write_failed_names_nothing_that_is_gone) {
  const auto backing = MemoryBacking::create();
  metadata::SealedFileSystem files(backing, make_keys(), false, padding_under_test());
  const rocksdb::FileOptions options;
  const rocksdb::IOOptions io;
  const auto create = [&](const std::string& path) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    EXPECT_TRUE(files.NewWritableFile(path, options, &file, nullptr).ok()) << path;
    return file;
  };
  ASSERT_TRUE(backing->make_directory("db"));
  const auto table = create("db/000007.sst");
  ASSERT_TRUE(table->Append("rows", io, nullptr).ok());
  ASSERT_TRUE(table->Close(io, nullptr).ok());

  auto manifest = create("db/MANIFEST-000005");
  ASSERT_TRUE(manifest->Append("no table", io, nullptr).ok());
  ASSERT_TRUE(manifest->Sync(io, nullptr).ok());
  const auto before = backing->load("db/MANIFEST-000005");
  backing->inject({.operations = change_write, .code = ErrorCode::no_space});
  auto written = manifest->Append("a table", io, nullptr);
  if (written.ok()) written = manifest->Flush(io, nullptr);
  EXPECT_TRUE(written.IsNoSpace()) << written.ToString();
  backing->clear_failures();
  manifest->Close(io, nullptr).PermitUncheckedError();
  manifest.reset();
  EXPECT_EQ(backing->load("db/MANIFEST-000005"), before);
  EXPECT_TRUE(files.DeleteFile("db/000007.sst", io, nullptr).ok());
  EXPECT_TRUE(backing->exists("db/000007.sst").value());

  manifest = create("db/MANIFEST-000006");
  ASSERT_TRUE(manifest->Append("no table", io, nullptr).ok());
  ASSERT_TRUE(manifest->Sync(io, nullptr).ok());
  const auto current = create("db/000006.dbtmp");
  ASSERT_TRUE(current->Append("MANIFEST-000006\n", io, nullptr).ok());
  ASSERT_TRUE(current->Sync(io, nullptr).ok());
  ASSERT_TRUE(current->Close(io, nullptr).ok());
  ASSERT_TRUE(files.RenameFile("db/000006.dbtmp", "db/CURRENT", io, nullptr).ok());
  std::unique_ptr<rocksdb::FSDirectory> folder;
  ASSERT_TRUE(files.NewDirectory("db", io, &folder, nullptr).ok());
  ASSERT_TRUE(folder->Fsync(io, nullptr).ok());
  EXPECT_TRUE(files.DeleteFile("db/000007.sst", io, nullptr).ok());
  EXPECT_FALSE(backing->exists("db/000007.sst").value());
}

}  // namespace
}  // namespace nacre::tests
