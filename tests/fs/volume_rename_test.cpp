// SPDX-License-Identifier: Apache-2.0
// Renaming in all its forms.
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::Attributes;
using fs::InodeNumber;
using fs::RenameMode;

class VolumeRename : public VolumeTest {
 protected:
  Result<> rename(InodeNumber from, std::string_view name, InodeNumber to,
                  std::string_view new_name, RenameMode mode = RenameMode::replace) {
    return volume().rename(from, name, to, new_name, mode);
  }
};

TEST_F(VolumeRename, moves_a_file_between_directories) {
  const InodeNumber a = make_directory(root, "a");
  const InodeNumber b = make_directory(root, "b");
  const InodeNumber file = make_file(a, "f");
  write(file, 0, "content");
  const Attributes before = stat(file);
  NACRE_EXPECT_OK(rename(a, "f", b, "g"));
  EXPECT_TRUE(list(a).empty());
  EXPECT_EQ(list(b), std::vector<std::string>{"g"});
  EXPECT_EQ(stat(a).size, 0u);
  EXPECT_EQ(stat(b).size, 1u);
  EXPECT_EQ(stat(file).link_count, 1u);
  EXPECT_GT(stat(file).changed, before.changed);
  EXPECT_EQ(stat(file).modified, before.modified);
  EXPECT_GE(stat(a).modified, before.changed);
  EXPECT_EQ(stat(a).modified, stat(b).modified);
  remount();
  EXPECT_EQ(read(find(find(root, "b"), "g")), "content");
}

TEST_F(VolumeRename, replaces_a_file) {
  const InodeNumber old = make_file(root, "f");
  write(old, 0, "old");
  const InodeNumber fresh = make_file(root, "f.new");
  write(fresh, 0, "new");
  NACRE_EXPECT_OK(rename(root, "f.new", root, "f"));
  EXPECT_EQ(list(root), std::vector<std::string>{"f"});
  EXPECT_EQ(stat(root).size, 1u);
  EXPECT_EQ(find(root, "f"), fresh);
  EXPECT_EQ(read(old), "old") << "whoever has it open still reads it";
  EXPECT_EQ(stat(old).link_count, 0u);
  remount();
  EXPECT_EQ(read(find(root, "f")), "new");
  EXPECT_CODE(stale, volume().lookup_inode(old));
}

TEST_F(VolumeRename, takes_one_link_from_a_file_with_several) {
  const InodeNumber kept = make_file(root, "kept");
  NACRE_ASSERT_OK(volume().link(kept, root, "target"));
  make_file(root, "f");
  NACRE_EXPECT_OK(rename(root, "f", root, "target"));
  EXPECT_EQ(stat(kept).link_count, 1u);
  EXPECT_EQ(list(root), (std::vector<std::string>{"kept", "target"}));
}

TEST_F(VolumeRename, does_nothing_between_two_names_of_one_file) {
  const InodeNumber file = make_file(root, "a");
  NACRE_ASSERT_OK(volume().link(file, root, "b"));
  for (const RenameMode mode : {RenameMode::replace, RenameMode::exchange}) {
    NACRE_EXPECT_OK(rename(root, "a", root, "b", mode));
    NACRE_EXPECT_OK(rename(root, "a", root, "a", mode));
    EXPECT_EQ(stat(file).link_count, 2u);
    EXPECT_EQ(list(root), (std::vector<std::string>{"a", "b"}));
  }
  EXPECT_CODE(exists, rename(root, "a", root, "b", RenameMode::no_replace));
}

TEST_F(VolumeRename, does_not_replace_when_told_so) {
  make_file(root, "a");
  make_file(root, "b");
  EXPECT_CODE(exists, rename(root, "a", root, "b", RenameMode::no_replace));
  NACRE_EXPECT_OK(rename(root, "a", root, "c", RenameMode::no_replace));
  EXPECT_EQ(list(root), (std::vector<std::string>{"b", "c"}));
}

TEST_F(VolumeRename, moves_directories_with_their_parent) {
  const InodeNumber a = make_directory(root, "a");
  const InodeNumber b = make_directory(root, "b");
  const InodeNumber moved = make_directory(a, "m");
  make_file(moved, "f");
  NACRE_EXPECT_OK(rename(a, "m", b, "n"));
  EXPECT_EQ(stat(a).link_count, 2u);
  EXPECT_EQ(stat(b).link_count, 3u);
  EXPECT_EQ(find(moved, ".."), b);
  remount();
  const InodeNumber again = find(find(root, "b"), "n");
  EXPECT_EQ(again, moved);
  EXPECT_EQ(find(again, ".."), b);
  EXPECT_EQ(list(again), std::vector<std::string>{"f"});
}

TEST_F(VolumeRename, replaces_only_empty_directories_and_only_by_directories) {
  const InodeNumber full = make_directory(root, "full");
  make_file(full, "f");
  const InodeNumber empty = make_directory(root, "empty");
  const InodeNumber moved = make_directory(root, "moved");
  make_file(moved, "inside");
  make_file(root, "file");
  EXPECT_CODE(not_empty, rename(root, "moved", root, "full"));
  EXPECT_CODE(not_directory, rename(root, "moved", root, "file"));
  EXPECT_CODE(is_directory, rename(root, "file", root, "empty"));
  EXPECT_EQ(stat(root).link_count, 5u);
  NACRE_EXPECT_OK(rename(root, "moved", root, "empty"));
  EXPECT_EQ(stat(root).link_count, 4u);
  EXPECT_EQ(stat(root).size, 3u);
  EXPECT_EQ(find(root, "empty"), moved);
  EXPECT_EQ(stat(empty).link_count, 0u);
}

TEST_F(VolumeRename, never_moves_a_directory_below_itself) {
  const InodeNumber a = make_directory(root, "a");
  const InodeNumber b = make_directory(a, "b");
  const InodeNumber c = make_directory(b, "c");
  make_file(root, "f");
  EXPECT_CODE(invalid_argument, rename(root, "a", a, "x"));
  EXPECT_CODE(invalid_argument, rename(root, "a", b, "x"));
  EXPECT_CODE(invalid_argument, rename(root, "a", c, "x"));
  EXPECT_CODE(invalid_argument, rename(root, "a", b, "c", RenameMode::exchange));
  EXPECT_CODE(invalid_argument, rename(b, "c", root, "a", RenameMode::exchange));
  EXPECT_CODE(not_empty, rename(b, "c", root, "a"));
  EXPECT_CODE(not_empty, rename(a, "b", root, "a"));
  NACRE_EXPECT_OK(rename(b, "c", root, "c"));
  NACRE_EXPECT_OK(rename(root, "a", c, "a"));
  EXPECT_EQ(find(b, ".."), a);
  EXPECT_EQ(volume().path_of(b), "/c/a/b");
}

TEST_F(VolumeRename, exchanges_a_file_and_a_directory) {
  const InodeNumber a = make_directory(root, "a");
  const InodeNumber b = make_directory(root, "b");
  const InodeNumber file = make_file(a, "x");
  const InodeNumber directory = make_directory(b, "y");
  make_file(directory, "inside");
  NACRE_EXPECT_OK(rename(a, "x", b, "y", RenameMode::exchange));
  EXPECT_EQ(find(a, "x"), directory);
  EXPECT_EQ(find(b, "y"), file);
  EXPECT_EQ(find(directory, ".."), a);
  EXPECT_EQ(stat(a).link_count, 3u);
  EXPECT_EQ(stat(b).link_count, 2u);
  EXPECT_EQ(stat(a).size, 1u);
  EXPECT_EQ(stat(b).size, 1u);
  EXPECT_CODE(not_found, rename(a, "x", b, "nothing", RenameMode::exchange));
  remount();
  EXPECT_TRUE(S_ISDIR(stat(find(find(root, "a"), "x")).mode));
  EXPECT_EQ(list(find(find(root, "a"), "x")), std::vector<std::string>{"inside"});
}

TEST_F(VolumeRename, needs_a_source) {
  make_file(root, "b");
  EXPECT_CODE(not_found, rename(root, "a", root, "b"));
  EXPECT_CODE(not_directory, rename(find(root, "b"), "a", root, "c"));
  EXPECT_CODE(invalid_argument, rename(root, "b", root, ".."));
}

}  // namespace
}  // namespace nacre::tests
