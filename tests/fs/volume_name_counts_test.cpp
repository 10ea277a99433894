// SPDX-License-Identifier: Apache-2.0
// What operations on names and attributes ask of the tables, and what their commit writes. The
// commit's rows are the directory entry, the inodes that changed and, where inodes come or go,
// their count.
#include "tests/fs/volume_counts_fixture.h"

namespace nacre::tests {
namespace {

using VolumeNameCounts = VolumeCounts;
using fs::RenameMode;

TEST_F(VolumeNameCounts, create) {
  // The first asks whether the directory has a default ACL.
  expect("create, first in a directory", {.gets = 1, .iterators = 1, .rows_read = 1, .puts = 1},
         [&] { make_file(root, "first"); });
  commit();
  expect("create", {.gets = 1, .rows_read = 1, .puts = 1}, [&] { make_file(root, "f"); });
  // The entry was put before; inode, directory and count of inodes are staged.
  expect_commit("commit of a create", rows_only(3, 4));
  EXPECT_LE(bytes_.database_written, 1024u);
}

TEST_F(VolumeNameCounts, a_hundred_creates_share_the_directorys_row_and_the_flush) {
  make_file(root, "first");
  commit();
  expect("100 creates", {.gets = 100, .rows_read = 100, .puts = 100}, [&] {
    for (int i = 0; i < 100; ++i)
      make_file(root, "f" + std::to_string(i));
  });
  expect_commit("commit of 100 creates", rows_only(102, 202));
  EXPECT_LE(bytes_.database_written, 32u << 10);
}

TEST_F(VolumeNameCounts, a_create_of_a_name_that_is_there_changes_nothing) {
  make_file(root, "f");
  commit();
  expect("create of an existing name", {.gets = 1, .rows_read = 1},
         [&] { EXPECT_CODE(exists, volume().make_node(root, "f", caller_, S_IFREG | 0644, 0)); });
  expect_nothing("commit of nothing", [&] { commit(); });
}

TEST_F(VolumeNameCounts, a_file_that_no_commit_saw_leaves_nothing_behind) {
  make_file(root, "first");
  commit();
  const auto inode = make_file(root, "f");
  expect("unlink before any commit", {.gets = 1, .erases = 1},
         [&] { NACRE_EXPECT_OK(volume().unlink(root, "f")); });
  volume().forget(inode, 1);
  // The directory's times and nothing else.
  expect_commit("commit of create and unlink", rows_only(1, 1));
}

TEST_F(VolumeNameCounts, make_directory) {
  make_file(root, "first");
  commit();
  expect("mkdir", {.gets = 1, .rows_read = 1, .puts = 1}, [&] { make_directory(root, "d"); });
  expect_commit("commit of a mkdir", rows_only(3, 4));
}

TEST_F(VolumeNameCounts, make_symlink) {
  make_file(root, "first");
  commit();
  fs::InodeNumber link;
  expect("symlink", {.gets = 1, .rows_read = 1, .puts = 1},
         [&] { link = volume().make_symlink(root, "l", caller_, "target")->inode; });
  expect_commit("commit of a symlink", rows_only(3, 4));
  expect_nothing("readlink", [&] { EXPECT_EQ(volume().read_symlink(link), "target"); });
}

TEST_F(VolumeNameCounts, link) {
  const auto file = make_file(root, "f");
  commit();
  expect("link", {.gets = 1, .rows_read = 1, .puts = 1},
         [&] { NACRE_EXPECT_OK(volume().link(file, root, "g")); });
  expect_commit("commit of a link", rows_only(2, 3));
}

TEST_F(VolumeNameCounts, rename) {
  make_file(root, "f");
  const auto directory = make_directory(root, "d");
  commit();
  expect("rename", {.gets = 2, .rows_read = 2, .puts = 1, .erases = 1},
         [&] { NACRE_EXPECT_OK(volume().rename(root, "f", root, "g", RenameMode::replace)); });
  expect_commit("commit of a rename", rows_only(2, 4));
  expect("rename to another directory", {.gets = 2, .rows_read = 2, .puts = 1, .erases = 1},
         [&] { NACRE_EXPECT_OK(volume().rename(root, "g", directory, "g", RenameMode::replace)); });
  expect_commit("commit of a rename to another directory", rows_only(3, 5));
}

TEST_F(VolumeNameCounts, rename_over_a_file) {
  make_file(root, "new");
  volume().forget(make_file(root, "old"), 1);
  commit();
  // It is not known whether the inode that goes has extended attributes.
  expect("rename over a file that nobody has open",
         {.gets = 3, .iterators = 1, .rows_read = 3, .puts = 1, .erases = 2},
         [&] { NACRE_EXPECT_OK(volume().rename(root, "new", root, "old", RenameMode::replace)); });
  expect_commit("commit of a rename over a file", rows_only(3, 6));
}

TEST_F(VolumeNameCounts, unlink_of_a_file_without_content) {
  const auto file = make_file(root, "f");
  commit();
  expect("unlink", {.gets = 1, .rows_read = 1, .erases = 1},
         [&] { NACRE_EXPECT_OK(volume().unlink(root, "f")); });
  // The size of the inode shows that it has no chunks.
  expect("forget of the last reference", {.erases = 1}, [&] { volume().forget(file, 1); });
  expect_commit("commit of an unlink", rows_only(2, 4));
}

TEST_F(VolumeNameCounts, remove_directory) {
  const auto directory = make_directory(root, "d");
  commit();
  expect("rmdir", {.gets = 1, .iterators = 1, .rows_read = 1, .erases = 1},
         [&] { NACRE_EXPECT_OK(volume().remove_directory(root, "d")); });
  expect("forget of a directory", {.erases = 1}, [&] { volume().forget(directory, 1); });
  expect_commit("commit of an rmdir", rows_only(2, 4));
}

TEST_F(VolumeNameCounts, lookup) {
  make_file(root, "f");
  forget_all();
  expect("lookup of an inode not in memory", {.gets = 2, .rows_read = 2}, [&] { find(root, "f"); });
  expect("lookup of one in memory", {.gets = 1, .rows_read = 1}, [&] { find(root, "f"); });
  expect("lookup of a missing name", {.gets = 1, .rows_read = 1},
         [&] { EXPECT_CODE(not_found, volume().lookup(root, "g")); });
  expect_nothing("commit of lookups", [&] { commit(); });
}

TEST_F(VolumeNameCounts, attributes) {
  const auto file = make_file(root, "f");
  forget_all();
  expect("getattr of an inode not in memory", {.gets = 1, .rows_read = 1}, [&] { stat(file); });
  find(root, "f");
  expect_nothing("getattr of one in memory", [&] { stat(file); });
}

TEST_F(VolumeNameCounts, change_of_attributes) {
  const auto file = make_file(root, "f");
  commit();
  const auto change = [&](const fs::AttributeChange& wanted) {
    NACRE_EXPECT_OK(volume().change_attributes(file, wanted));
  };
  // Since the file was made, it is known whether it has an ACL.
  expect_nothing("chmod", [&] { change({.mode = 0600}); });
  expect_nothing("chown", [&] { change({.uid = 7, .gid = 7}); });
  expect_nothing("utimens", [&] {
    change({.accessed = fs::Timestamp{1, 0}, .modified = fs::Timestamp{2, 0}});
  });
  expect_commit("commit of chmod, chown and utimens", rows_only(1, 1));
}

class VolumeListCounts : public VolumeCounts {
 protected:
  void SetUp() override {
    VolumeCounts::SetUp();
    make_files(100);
  }
  // Makes files until there are count of them. Afterwards none of them is in memory.
  void make_files(std::size_t count) {
    for (; file_count_ < count; ++file_count_)
      volume().forget(make_file(root, "f" + std::to_string(file_count_)), 1);
    forget_all();
    // The access is noted once until the directory changes.
    read_all(false);
    commit();
  }
  void read_all(bool with_attributes) {
    std::size_t count = 0;
    NACRE_EXPECT_OK(volume().read_directory(root, 0, with_attributes, [&](const auto&) {
      ++count;
      return true;
    }));
    EXPECT_EQ(count, file_count_ + 2);
  }

 private:
  std::size_t file_count_ = 0;
};

TEST_F(VolumeListCounts, readdir_of_a_hundred_names) {
  // In pieces of 32, 64 and 4, each by an iterator; the first two look one row ahead, for a name
  // of the same hash.
  expect("readdir", {.iterators = 3, .rows_read = 102}, [&] { read_all(false); });
  expect_nothing("commit of a listing", [&] { commit(); });
}

TEST_F(VolumeListCounts, readdirplus_of_a_hundred_names) {
  expect("readdirplus, inodes not in memory", {.gets = 100, .iterators = 3, .rows_read = 202},
         [&] { read_all(true); });
  expect("readdirplus, inodes in memory", {.iterators = 3, .rows_read = 102},
         [&] { read_all(true); });
}

TEST_F(VolumeListCounts, readdirplus_of_more_names_reads_their_inodes_together) {
  make_files(300);
  // In pieces of 32, 64, 128 and 76: the third one is large.
  expect("readdirplus, inodes not in memory",
         {.gets = 172, .many_gets = 1, .iterators = 4, .rows_read = 603}, [&] { read_all(true); });
}

TEST_F(VolumeNameCounts, extended_attributes) {
  const auto file = make_file(root, "f");
  commit();
  expect_nothing("getxattr of a file without any",
                 [&] { EXPECT_CODE(no_attribute, volume().get_xattr(file, "user.a")); });
  const auto set = [&](std::string_view value) {
    NACRE_EXPECT_OK(volume().set_xattr(file, "user.a", value, fs::XattrMode::set, false));
  };
  expect("setxattr of a file without any", {.puts = 1}, [&] { set("1"); });
  expect_commit("commit of a setxattr", rows_only(1, 2));
  expect("setxattr of one that is there", {.gets = 1, .rows_read = 1, .puts = 1},
         [&] { set("2"); });
  commit();
  expect("getxattr", {.gets = 1, .rows_read = 1},
         [&] { EXPECT_EQ(volume().get_xattr(file, "user.a"), "2"); });
  expect("listxattr", {.iterators = 1, .rows_read = 1},
         [&] { EXPECT_EQ(volume().list_xattrs(file)->size(), 1u); });
  forget_all();
  find(root, "f");
  expect("getxattr, not in memory", {.gets = 1, .iterators = 1, .rows_read = 2},
         [&] { EXPECT_EQ(volume().get_xattr(file, "user.a"), "2"); });
}

TEST_F(VolumeNameCounts, sync_of_what_is_durable_asks_for_nothing) {
  const auto file = make_file(root, "f");
  expect("fsync of a new file", rows_only(3, 4), [&] { NACRE_EXPECT_OK(sync(file)); });
  expect_nothing("fsync of a durable file", [&] { NACRE_EXPECT_OK(sync(file)); });
  expect_nothing("fsync of a durable directory", [&] { NACRE_EXPECT_OK(sync(root)); });
}

}  // namespace
}  // namespace nacre::tests
