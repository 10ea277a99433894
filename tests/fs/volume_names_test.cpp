// SPDX-License-Identifier: Apache-2.0
// Names: making, finding, linking and removing them, and what that does to the inodes around.
#include "tests/fs/volume_fixture.h"

#include <sys/sysmacros.h>

namespace nacre::tests {
namespace {

using fs::Attributes;
using fs::InodeNumber;
using metadata::Table;

class VolumeNames : public VolumeTest {};

TEST_F(VolumeNames, a_new_volume_has_an_empty_root_of_its_owner) {
  const Attributes attributes = stat(root);
  EXPECT_EQ(attributes.mode, S_IFDIR | 0755u);
  EXPECT_EQ(attributes.uid, caller_.uid);
  EXPECT_EQ(attributes.gid, caller_.gid);
  EXPECT_EQ(attributes.link_count, 2u);
  EXPECT_EQ(attributes.size, 0u);
  EXPECT_TRUE(list(root).empty());
  EXPECT_EQ(find(root, "."), root);
  EXPECT_EQ(find(root, ".."), root);
}

TEST_F(VolumeNames, files_of_every_type_are_as_asked_for_after_a_remount_too) {
  const std::vector<std::pair<std::string, std::uint32_t>> nodes = {{"file", S_IFREG | 06711},
                                                                    {"fifo", S_IFIFO | 0600},
                                                                    {"socket", S_IFSOCK | 0777},
                                                                    {"disk", S_IFBLK | 0660},
                                                                    {"tty", S_IFCHR | 0620}};
  for (const auto& [name, mode] : nodes) {
    const auto made = volume().make_node(root, name, caller_, mode, makedev(259, 65537));
    NACRE_ASSERT_OK(made);
    EXPECT_EQ(made->mode, mode & ~caller_.umask) << name;
    EXPECT_EQ(made->link_count, 1u);
    EXPECT_EQ(made->uid, caller_.uid);
    EXPECT_EQ(made->gid, caller_.gid);
    EXPECT_EQ(made->born, made->changed);
    EXPECT_GT(made->born.seconds, 0);
  }
  remount();
  for (const auto& [name, mode] : nodes) {
    const Attributes attributes = stat(find(root, name));
    EXPECT_EQ(attributes.mode, mode & ~caller_.umask) << name;
    const bool is_device = S_ISBLK(mode) || S_ISCHR(mode);
    EXPECT_EQ(attributes.rdev, is_device ? makedev(259, 65537) : 0u) << name;
  }
  EXPECT_CODE(not_permitted, volume().make_node(root, "d", caller_, S_IFDIR | 0755, 0));
  EXPECT_CODE(invalid_argument, volume().make_node(root, "l", caller_, S_IFLNK | 0755, 0));
}

TEST_F(VolumeNames, names_have_limits) {
  const std::string longest(255, 'n');
  make_file(root, longest);
  EXPECT_EQ(list(root), std::vector<std::string>{longest});
  const std::string too_long(256, 'n');
  EXPECT_CODE(name_too_long, volume().make_node(root, too_long, caller_, S_IFREG, 0));
  EXPECT_CODE(name_too_long, volume().lookup(root, too_long));
  EXPECT_CODE(name_too_long, volume().unlink(root, too_long));
  EXPECT_CODE(name_too_long,
              volume().rename(root, longest, root, too_long, fs::RenameMode::replace));
  for (const std::string& bad : {std::string(""), std::string("."), std::string(".."),
                                 std::string("a/b"), std::string("a\0b", 3)}) {
    EXPECT_CODE(invalid_argument, volume().make_directory(root, bad, caller_, 0755));
  }
  const std::string odd = "\xff\n\t \xc3\x28";
  const InodeNumber named = make_file(root, odd);
  EXPECT_EQ(find(root, odd), named) << "any other bytes are a name";
}

TEST_F(VolumeNames, making_checks_what_is_there) {
  const InodeNumber file = make_file(root, "f");
  EXPECT_CODE(exists, volume().make_node(root, "f", caller_, S_IFREG, 0));
  EXPECT_CODE(exists, volume().make_directory(root, "f", caller_, 0755));
  EXPECT_CODE(exists, volume().make_symlink(root, "f", caller_, "x"));
  EXPECT_CODE(exists, volume().link(file, root, "f"));
  EXPECT_CODE(not_directory, volume().make_node(file, "x", caller_, S_IFREG, 0));
  EXPECT_CODE(not_directory, volume().lookup(file, "x"));
  EXPECT_CODE(not_found, volume().lookup(root, "nothing"));
  EXPECT_CODE(stale, volume().lookup(InodeNumber{12345}, "x"));
  EXPECT_CODE(stale, volume().attributes(InodeNumber{0}));
}

TEST_F(VolumeNames, directories_count_entries_and_subdirectories) {
  const InodeNumber directory = make_directory(root, "d");
  EXPECT_EQ(stat(directory).link_count, 2u);
  make_directory(directory, "a");
  make_directory(directory, "b");
  make_file(directory, "c");
  EXPECT_EQ(stat(directory).link_count, 4u);
  EXPECT_EQ(stat(directory).size, 3u);
  EXPECT_EQ(find(find(directory, "a"), ".."), directory);
  remount();
  const InodeNumber again = find(root, "d");
  EXPECT_EQ(stat(again).link_count, 4u);
  EXPECT_EQ(stat(again).size, 3u);
  NACRE_EXPECT_OK(volume().remove_directory(again, "a"));
  NACRE_EXPECT_OK(volume().unlink(again, "c"));
  EXPECT_EQ(stat(again).link_count, 3u);
  EXPECT_EQ(stat(again).size, 1u);
}

TEST_F(VolumeNames, removing_checks_what_is_there) {
  const InodeNumber directory = make_directory(root, "d");
  make_file(directory, "f");
  EXPECT_CODE(not_empty, volume().remove_directory(root, "d"));
  EXPECT_CODE(is_directory, volume().unlink(root, "d"));
  EXPECT_CODE(not_directory, volume().remove_directory(directory, "f"));
  EXPECT_CODE(not_found, volume().unlink(root, "x"));
  EXPECT_CODE(not_found, volume().remove_directory(root, "x"));
  NACRE_EXPECT_OK(volume().unlink(directory, "f"));
  NACRE_EXPECT_OK(volume().remove_directory(root, "d"));
  EXPECT_FALSE(exists(root, "d"));
  // The directory is still looked up, so it can be used, but nothing can be made in it.
  EXPECT_EQ(stat(directory).link_count, 0u);
  EXPECT_CODE(not_found, volume().make_node(directory, "g", caller_, S_IFREG, 0));
  EXPECT_CODE(not_found, volume().link(make_file(root, "h"), directory, "g"));
  EXPECT_CODE(not_found, volume().rename(root, "h", directory, "g", fs::RenameMode::replace));
}

TEST_F(VolumeNames, changes_of_a_directory_show_in_its_times) {
  const InodeNumber directory = make_directory(root, "d");
  const auto changes = [&](const std::function<void()>& change) {
    const Attributes before = stat(directory);
    change();
    const Attributes after = stat(directory);
    EXPECT_GT(after.modified, before.modified);
    EXPECT_EQ(after.modified, after.changed);
  };
  changes([&] { make_file(directory, "f"); });
  changes([&] { NACRE_EXPECT_OK(volume().link(find(directory, "f"), directory, "g")); });
  changes([&] {
    NACRE_EXPECT_OK(volume().rename(directory, "g", directory, "h", fs::RenameMode::replace));
  });
  changes([&] { NACRE_EXPECT_OK(volume().unlink(directory, "h")); });
  changes([&] { make_directory(directory, "s"); });
  changes([&] { NACRE_EXPECT_OK(volume().remove_directory(directory, "s")); });
}

TEST_F(VolumeNames, hard_links_are_one_file) {
  const InodeNumber file = make_file(root, "a");
  const InodeNumber directory = make_directory(root, "d");
  const Attributes before = stat(file);
  const auto linked = volume().link(file, directory, "b");
  NACRE_ASSERT_OK(linked);
  EXPECT_EQ(linked->inode, file);
  EXPECT_EQ(linked->link_count, 2u);
  EXPECT_GT(linked->changed, before.changed);
  EXPECT_EQ(linked->modified, before.modified);
  write(file, 0, "shared");
  NACRE_EXPECT_OK(volume().unlink(root, "a"));
  remount();
  const InodeNumber left = find(find(root, "d"), "b");
  EXPECT_EQ(left, file);
  EXPECT_EQ(stat(left).link_count, 1u);
  EXPECT_EQ(read(left), "shared");
  EXPECT_CODE(not_permitted, volume().link(find(root, "d"), root, "e"));
}

TEST_F(VolumeNames, symlinks_hold_their_target) {
  const std::string longest(4095, 't');
  for (const std::string& target : {std::string("x"), std::string("../a/b"), longest}) {
    const auto made = volume().make_symlink(root, "l", caller_, target);
    NACRE_ASSERT_OK(made);
    EXPECT_EQ(made->mode, S_IFLNK | 0777u);
    EXPECT_EQ(made->size, target.size());
    remount();
    EXPECT_EQ(volume().read_symlink(find(root, "l")).value(), target);
    NACRE_EXPECT_OK(volume().unlink(root, "l"));
  }
  EXPECT_CODE(name_too_long, volume().make_symlink(root, "l", caller_, longest + "t"));
  EXPECT_CODE(not_found, volume().make_symlink(root, "l", caller_, ""));
  EXPECT_CODE(invalid_argument, volume().read_symlink(make_file(root, "f")));
}

TEST_F(VolumeNames, set_group_id_directories_hand_on_their_group) {
  const InodeNumber directory = make_directory(root, "d");
  NACRE_ASSERT_OK(volume().change_attributes(directory, {.mode = 02775, .gid = 777}));
  // A change of group does not take the bit from a directory.
  ASSERT_EQ(stat(directory).mode, S_IFDIR | 02775u);
  const Attributes file = stat(make_file(directory, "f"));
  EXPECT_EQ(file.gid, 777u);
  EXPECT_EQ(file.mode, S_IFREG | 0644u);
  const Attributes below = stat(make_directory(directory, "s"));
  EXPECT_EQ(below.gid, 777u);
  EXPECT_EQ(below.mode, S_IFDIR | 02755u);
  NACRE_ASSERT_OK(volume().make_symlink(directory, "l", caller_, "x"));
  EXPECT_EQ(stat(find(directory, "l")).gid, 777u);
}

TEST_F(VolumeNames, an_unlinked_file_lives_while_it_is_looked_up) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "still here");
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  EXPECT_EQ(stat(file).link_count, 0u);
  EXPECT_EQ(read(file), "still here");
  write(file, 10, ", and growing");
  EXPECT_EQ(read(file), "still here, and growing");
  EXPECT_CODE(stale, volume().lookup_inode(file));
  EXPECT_CODE(not_found, volume().link(file, root, "back"));
  volume().forget(file, 1);
  EXPECT_CODE(stale, volume().attributes(file));
  unmount();
  auto counts = count_rows();
  EXPECT_EQ(counts[Table::inodes], 1u);
  EXPECT_EQ(counts[Table::dentries], 0u);
  EXPECT_EQ(counts[Table::chunks], 0u);
  EXPECT_EQ(counts[Table::inlined], 0u);
  EXPECT_EQ(counts[Table::orphans], 0u);
  mount();
}

TEST_F(VolumeNames, a_file_made_without_a_name_can_get_one) {
  const auto made = volume().make_unnamed(root, caller_, 0640);
  NACRE_ASSERT_OK(made);
  EXPECT_EQ(made->link_count, 0u);
  EXPECT_EQ(made->mode, S_IFREG | 0640u);
  write(made->inode, 0, "content");
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_TRUE(list(root).empty());
  const auto linked = volume().link(made->inode, root, "named");
  NACRE_ASSERT_OK(linked);
  EXPECT_EQ(linked->link_count, 1u);
  remount();
  EXPECT_EQ(read(find(root, "named")), "content");
  unmount();
  EXPECT_EQ(count_rows()[Table::orphans], 0u);
  mount();
}

TEST_F(VolumeNames, a_file_without_a_name_is_gone_after_the_mount) {
  const auto made = volume().make_unnamed(root, caller_, 0640);
  NACRE_ASSERT_OK(made);
  write(made->inode, 0, std::string(100'000, 'x'));
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();
  EXPECT_CODE(stale, volume().lookup_inode(made->inode));
  unmount();
  auto counts = count_rows();
  EXPECT_EQ(counts[Table::inodes], 1u);
  EXPECT_EQ(counts[Table::chunks], 0u);
  EXPECT_EQ(counts[Table::orphans], 0u);
  mount();
}

TEST_F(VolumeNames, what_is_made_and_removed_within_a_group_leaves_no_rows) {
  NACRE_EXPECT_OK(volume().sync_all());
  const auto commits = mounted().stats().database.commit_count;
  for (int i = 0; i < 10; ++i) {
    const std::string name = "f" + std::to_string(i);
    const InodeNumber file = make_file(root, name);
    write(file, 0, "short-lived");
    NACRE_EXPECT_OK(volume().set_xattr(file, "user.x", "y", fs::XattrMode::set, false));
    NACRE_EXPECT_OK(volume().unlink(root, name));
    volume().forget(file, 1);
  }
  EXPECT_EQ(mounted().stats().database.open_group_rows, 0u);
  EXPECT_EQ(mounted().stats().inode_count, 1u);
  EXPECT_EQ(mounted().stats().dirty_bytes, 0u);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_LE(mounted().stats().database.commit_count, commits + 1) << "the root's times alone";
}

TEST_F(VolumeNames, inode_numbers_are_never_used_twice) {
  const InodeNumber first = make_file(root, "a");
  NACRE_EXPECT_OK(volume().unlink(root, "a"));
  volume().forget(first, 1);
  const InodeNumber second = make_file(root, "b");
  EXPECT_GT(second, first);
  // No commit has the second inode, but the third one must still get another number.
  lose_power();
  EXPECT_FALSE(exists(root, "b"));
  const InodeNumber third = make_file(root, "c");
  EXPECT_GT(third, second);
  remount();
  EXPECT_EQ(make_file(root, "d").value, third.value + 1) << "a clean unmount wastes none";
}

TEST_F(VolumeNames, lookups_bound_what_stays_in_memory) {
  const InodeNumber directory = make_directory(root, "d");
  for (int i = 0; i < 100; ++i) {
    make_file(directory, "f" + std::to_string(i));
  }
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().known_inodes, 102u);
  for (int i = 0; i < 100; ++i) {
    const InodeNumber file = find(directory, "f" + std::to_string(i));
    volume().forget(file, 1);
    volume().forget(file, 1);
  }
  EXPECT_EQ(mounted().stats().known_inodes, 2u);
  volume().forget(directory, 1);
  EXPECT_EQ(mounted().stats().known_inodes, 1u);
  EXPECT_EQ(list(find(root, "d")).size(), 100u);
}

TEST_F(VolumeNames, a_forgotten_file_keeps_what_was_written_to_it) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "unflushed");
  volume().forget(file, 1);
  EXPECT_EQ(read(find(root, "f")), "unflushed");
  volume().forget(file, 1);
  remount();
  EXPECT_EQ(read(find(root, "f")), "unflushed");
}

TEST_F(VolumeNames, paths_are_known_from_lookups_and_from_rows) {
  const InodeNumber a = make_directory(root, "a");
  const InodeNumber b = make_directory(a, "b");
  const InodeNumber file = make_file(b, "f");
  EXPECT_EQ(volume().path_of(root), "/");
  EXPECT_EQ(volume().path_of(file), "/a/b/f");
  NACRE_EXPECT_OK(volume().rename(root, "a", root, "z", fs::RenameMode::replace));
  EXPECT_EQ(volume().path_of(file), "/z/b/f");
  remount();
  EXPECT_EQ(volume().path_of(b), "/z/b") << "found by way of the directory's parent";
  EXPECT_EQ(volume().path_of(file), "(inode " + std::to_string(file.value) + ")");
  find(b, "f");
  EXPECT_EQ(volume().path_of(file), "/z/b/f");
  NACRE_EXPECT_OK(volume().unlink(b, "f"));
  EXPECT_EQ(volume().path_of(file), "/z/b/f (deleted)");
}

// The daemon itself needs paths, also where messages must not tell them.
TEST_F(VolumeNames, that_messages_hide_are_known_all_the_same) {
  options_.may_name_files = false;
  remount();
  const InodeNumber folder = make_directory(root, "a");
  const InodeNumber file = make_file(folder, "f");
  EXPECT_EQ(volume().path_of(file), "/a/f");
  EXPECT_EQ(volume().shown_name(file), "(inode " + std::to_string(file.value) + ")");
}

TEST_F(VolumeNames, a_large_deleted_file_goes_in_pieces) {
  options_.checkpoints.interval_ms = 0;
  lose_power();  // mounts with them
  const std::string block(64u << 10, 'x');
  const InodeNumber file = make_file(root, "big");
  // Every second chunk is written, so that each has a row of its own.
  constexpr std::uint64_t row_count = 1500;
  for (std::uint64_t i = 0; i < row_count; ++i) {
    write(file, i * (32u << 10), std::string_view(block).substr(0, 100));
  }
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().data_bytes, row_count * 100);
  NACRE_EXPECT_OK(volume().unlink(root, "big"));
  volume().forget(file, 1);
  // The rest goes in the background, or at the next mount if that is sooner.
  remount();
  while (mounted().stats().inode_count > 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().data_bytes, 0u);
  EXPECT_EQ(mounted().stats().segments.live_bytes, 0u);
  unmount();
  auto counts = count_rows();
  EXPECT_EQ(counts[Table::inodes], 1u);
  EXPECT_EQ(counts[Table::chunks], 0u);
  EXPECT_EQ(counts[Table::orphans], 0u);
  mount();
}

}  // namespace
}  // namespace nacre::tests
