// SPDX-License-Identifier: Apache-2.0
// Modes, owners, times and flags.
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::AttributeChange;
using fs::Attributes;
using fs::InodeNumber;
using fs::Timestamp;

class VolumeAttributes : public VolumeTest {
 protected:
  Attributes change(InodeNumber inode, const AttributeChange& change) {
    const auto changed = volume().change_attributes(inode, change);
    NACRE_EXPECT_OK(changed);
    return changed.value_or(Attributes{});
  }
  std::uint32_t permissions(InodeNumber inode) { return stat(inode).mode & 07777; }
};

TEST_F(VolumeAttributes, keep_what_they_were_set_to_after_a_remount_too) {
  const InodeNumber file = make_file(root, "f");
  const Timestamp accessed{-5, 999'999'999}, modified{1ll << 40, 1};
  const Attributes before = stat(file);
  const Attributes set = change(
      file,
      {.mode = 04751, .uid = 0xfffffffe, .gid = 70000, .accessed = accessed, .modified = modified});
  EXPECT_EQ(set.mode, S_IFREG | 04751u) << "an explicit mode is what was asked for";
  EXPECT_GT(set.changed, before.changed);
  remount();
  const Attributes after = stat(find(root, "f"));
  EXPECT_EQ(after.mode, S_IFREG | 04751u);
  EXPECT_EQ(after.uid, 0xfffffffeu);
  EXPECT_EQ(after.gid, 70000u);
  EXPECT_EQ(after.accessed, accessed);
  EXPECT_EQ(after.modified, modified);
  EXPECT_EQ(after.changed, set.changed);
  EXPECT_EQ(after.born, before.born);
}

TEST_F(VolumeAttributes, take_the_kernels_change_time) {
  const InodeNumber file = make_file(root, "f");
  const Timestamp when{1'000'000, 7};
  EXPECT_EQ(change(file, {.modified = when, .changed = when}).changed, when);
}

TEST_F(VolumeAttributes, chown_takes_the_set_id_bits) {
  const InodeNumber file = make_file(root, "f", 0);
  const auto bits_after = [&](std::uint32_t mode, const AttributeChange& what) {
    change(file, {.mode = mode});
    change(file, what);
    return permissions(file);
  };
  EXPECT_EQ(bits_after(06755, {.uid = 5}), 0755u);
  EXPECT_EQ(bits_after(06755, {.gid = 5}), 0755u);
  EXPECT_EQ(bits_after(06745, {.uid = 5}), 02745u) << "without group execution it is no set-gid";
  EXPECT_EQ(bits_after(06755, {.modified = Timestamp{1, 0}}), 06755u);
  EXPECT_EQ(bits_after(06755, {.size = 10}), 06755u) << "by somebody who may keep them";
  EXPECT_EQ(bits_after(06755, {.size = 10, .clear_set_id = fs::ClearSetId::those_that_lend}),
            0755u);
  const InodeNumber directory = make_directory(root, "d");
  change(directory, {.mode = 06775});
  change(directory, {.uid = 5, .gid = 5});
  EXPECT_EQ(permissions(directory), 06775u);
}

TEST_F(VolumeAttributes, a_write_takes_the_set_id_bits_when_asked_to) {
  const InodeNumber file = make_file(root, "f");
  change(file, {.mode = 06755});
  NACRE_EXPECT_OK(volume().write(file, 0, as_bytes("x"), {}));
  EXPECT_EQ(permissions(file), 06755u);
  NACRE_EXPECT_OK(volume().write(file, 0, {}, {.clear_set_id = fs::ClearSetId::those_that_lend}));
  EXPECT_EQ(permissions(file), 06755u) << "nothing was written";
  NACRE_EXPECT_OK(
      volume().write(file, 0, as_bytes("x"), {.clear_set_id = fs::ClearSetId::those_that_lend}));
  EXPECT_EQ(permissions(file), 0755u);
}

TEST_F(VolumeAttributes, content_changes_show_in_the_times) {
  const InodeNumber file = make_file(root, "f");
  const auto moves = [&](const std::function<void()>& what) {
    const Attributes before = stat(file);
    what();
    const Attributes after = stat(file);
    EXPECT_GT(after.modified, before.modified);
    EXPECT_GT(after.changed, before.changed);
  };
  moves([&] { write(file, 0, "x"); });
  moves([&] { change(file, {.size = 100}); });
  moves([&] { change(file, {.size = 100}); });
  moves([&] { NACRE_EXPECT_OK(volume().allocate(file, fs::AllocateMode::punch_hole, 0, 5)); });
  const Attributes before = stat(file);
  change(file, {.mode = 0600});
  EXPECT_EQ(stat(file).modified, before.modified);
  EXPECT_GT(stat(file).changed, before.changed);
}

TEST_F(VolumeAttributes, reads_are_noted_as_relatime_has_it) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "x");
  const Attributes written = stat(file);
  read(file);
  const Attributes first = stat(file);
  EXPECT_GT(first.accessed, written.modified) << "changed since it was read";
  EXPECT_EQ(first.changed, written.changed);
  read(file);
  EXPECT_EQ(stat(file).accessed, first.accessed) << "read already";
  const Timestamp long_ago{first.changed.seconds - 200'000, 0};
  change(file, {.accessed = Timestamp{first.changed.seconds - 100'000, 0},
                .modified = long_ago,
                .changed = long_ago});
  read(file);
  EXPECT_GE(stat(file).accessed, first.accessed) << "not read for a day";

  const InodeNumber directory = make_directory(root, "d");
  const Timestamp made = stat(directory).accessed;
  list(directory);
  EXPECT_GT(stat(directory).accessed, made);
  NACRE_EXPECT_OK(volume().set_flags(file, metadata::inode_flag_no_atime));
  change(file, {.accessed = Timestamp{1, 0}});
  read(file);
  EXPECT_EQ(stat(file).accessed, (Timestamp{1, 0}));
}

TEST_F(VolumeAttributes, reads_are_noted_always_or_never_when_told_so) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "x");
  const Timestamp long_ago{stat(file).changed.seconds - 200'000, 0};
  const auto noted = [&](fs::AccessTimes access_times) {
    options_.access_times = access_times;
    remount();
    // Read since it changed, and not long ago: nothing that relatime would note.
    const Timestamp before{stat(file).born.seconds - 10, 0};
    change(file, {.accessed = before, .modified = long_ago, .changed = long_ago});
    read(file);
    return stat(file).accessed != before;
  };
  EXPECT_FALSE(noted(fs::AccessTimes::relative));
  EXPECT_TRUE(noted(fs::AccessTimes::always));
  EXPECT_FALSE(noted(fs::AccessTimes::never));
}

TEST_F(VolumeAttributes, sizes_belong_to_regular_files) {
  EXPECT_CODE(is_directory, volume().change_attributes(root, {.size = 1}));
  const auto fifo = volume().make_node(root, "fifo", caller_, S_IFIFO | 0600, 0);
  EXPECT_CODE(invalid_argument, volume().change_attributes(fifo->inode, {.size = 1}));
  const InodeNumber file = make_file(root, "f");
  EXPECT_CODE(too_big, volume().change_attributes(file, {.size = 1ull << 63}));
  EXPECT_EQ(change(file, {.size = (1ull << 63) - 1}).size, (1ull << 63) - 1);
  EXPECT_EQ(stat(file).blocks, 0u);
}

TEST_F(VolumeAttributes, blocks_count_the_data) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "x");
  EXPECT_EQ(stat(file).blocks, 1u);
  write(file, 1u << 20, std::string(16u << 10, 'y'));
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(stat(file).blocks, 33u) << "two chunks with data, a hole between them";
  remount();
  EXPECT_EQ(stat(find(root, "f")).blocks, 33u);
}

TEST_F(VolumeAttributes, immutable_files_do_not_change) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "x");
  const Attributes before = stat(file);
  NACRE_EXPECT_OK(volume().set_flags(file, metadata::inode_flag_immutable));
  EXPECT_GT(stat(file).changed, before.changed);
  remount();
  EXPECT_EQ(find(root, "f"), file);
  EXPECT_EQ(stat(file).flags, metadata::inode_flag_immutable);
  EXPECT_CODE(not_permitted, volume().write(file, 1, as_bytes("y"), {}));
  EXPECT_CODE(not_permitted, volume().change_attributes(file, {.size = 0}));
  EXPECT_CODE(not_permitted, volume().change_attributes(file, {.mode = 0777}));
  EXPECT_CODE(not_permitted, volume().change_attributes(file, {.uid = 1}));
  EXPECT_CODE(not_permitted, volume().change_attributes(file, {.modified = Timestamp{1, 0}}));
  EXPECT_CODE(not_permitted, volume().set_xattr(file, "user.x", "y", fs::XattrMode::set, false));
  EXPECT_CODE(not_permitted, volume().remove_xattr(file, "user.x"));
  EXPECT_CODE(not_permitted, volume().allocate(file, fs::AllocateMode::allocate, 0, 9));
  const InodeNumber other = make_file(root, "g");
  write(other, 0, "z");
  EXPECT_CODE(not_permitted, volume().copy_range(other, 0, file, 0, 1));
  EXPECT_CODE(not_permitted, volume().link(file, root, "l"));
  EXPECT_CODE(not_permitted, volume().unlink(root, "f"));
  EXPECT_CODE(not_permitted, volume().rename(root, "f", root, "n", fs::RenameMode::replace));
  EXPECT_CODE(not_permitted, volume().rename(root, "g", root, "f", fs::RenameMode::replace));
  EXPECT_EQ(read(file), "x");
  NACRE_EXPECT_OK(volume().set_flags(file, 0));
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
}

TEST_F(VolumeAttributes, immutable_directories_keep_their_names) {
  const InodeNumber directory = make_directory(root, "d");
  const InodeNumber file = make_file(directory, "f");
  make_directory(directory, "s");
  NACRE_EXPECT_OK(volume().set_flags(directory, metadata::inode_flag_immutable));
  EXPECT_CODE(not_permitted, volume().make_node(directory, "g", caller_, S_IFREG, 0));
  EXPECT_CODE(not_permitted, volume().make_directory(directory, "g", caller_, 0));
  EXPECT_CODE(not_permitted, volume().make_symlink(directory, "g", caller_, "x"));
  EXPECT_CODE(not_permitted, volume().make_unnamed(directory, caller_, 0600));
  EXPECT_CODE(not_permitted, volume().link(file, directory, "g"));
  EXPECT_CODE(not_permitted, volume().unlink(directory, "f"));
  EXPECT_CODE(not_permitted, volume().remove_directory(directory, "s"));
  EXPECT_CODE(not_permitted, volume().rename(directory, "f", root, "f", fs::RenameMode::replace));
  EXPECT_CODE(not_permitted, volume().remove_directory(root, "d"));
  write(file, 0, "files in it still change");
}

TEST_F(VolumeAttributes, append_only_files_grow_at_their_end) {
  const InodeNumber file = make_file(root, "log");
  write(file, 0, "one\n");
  NACRE_EXPECT_OK(volume().set_flags(file, metadata::inode_flag_append));
  write(file, 4, "two\n");
  // The kernel writes back a whole page, with the old bytes in it.
  write(file, 0, "one\ntwo\nthree\n");
  EXPECT_CODE(not_permitted, volume().write(file, 0, as_bytes("ONE\n"), {}));
  EXPECT_CODE(not_permitted, volume().write(file, 100, as_bytes("x"), {}));
  EXPECT_CODE(not_permitted, volume().change_attributes(file, {.size = 0}));
  EXPECT_CODE(not_permitted, volume().change_attributes(file, {.mode = 0600}));
  EXPECT_CODE(not_permitted, volume().allocate(file, fs::AllocateMode::punch_hole, 0, 1));
  EXPECT_CODE(not_permitted, volume().unlink(root, "log"));
  EXPECT_CODE(not_permitted, volume().rename(root, "log", root, "l", fs::RenameMode::replace));
  change(file, {.modified = Timestamp{1, 0}});
  EXPECT_EQ(read(file), "one\ntwo\nthree\n");
}

TEST_F(VolumeAttributes, append_only_files_take_no_chosen_times) {
  using Times = fs::AttributeChange::Times;
  const InodeNumber file = make_file(root, "log");
  NACRE_EXPECT_OK(volume().set_flags(file, metadata::inode_flag_append));
  const Timestamp early{1'000'000, 0}, late{1'000'030, 5}, past{1, 0};
  EXPECT_CODE(not_permitted,
              volume().change_attributes(file, {.modified = past, .times = Times::chosen}));
  EXPECT_CODE(not_permitted,
              volume().change_attributes(file, {.accessed = past, .times = Times::chosen}));
  EXPECT_CODE(not_permitted,
              volume().change_attributes(
                  file, {.modified = past, .changed = late, .times = Times::maybe_chosen}));
  // The times that the kernel sends after writes, also after the clock was put back.
  change(file, {.modified = late, .changed = late, .times = Times::maybe_chosen});
  change(file, {.modified = early, .changed = late, .times = Times::maybe_chosen});
  change(file,
         {.modified = early, .changed = Timestamp{1'700'000'000, 0}, .times = Times::maybe_chosen});
  EXPECT_EQ(stat(file).modified, early);
  NACRE_EXPECT_OK(volume().set_flags(file, 0));
  change(file, {.modified = past, .changed = late, .times = Times::chosen});
}

TEST_F(VolumeAttributes, append_only_directories_gain_names_and_lose_none) {
  const InodeNumber directory = make_directory(root, "d");
  make_file(directory, "f");
  make_file(root, "g");
  NACRE_EXPECT_OK(volume().set_flags(directory, metadata::inode_flag_append));
  make_file(directory, "h");
  NACRE_EXPECT_OK(volume().rename(root, "g", directory, "g", fs::RenameMode::replace));
  EXPECT_CODE(not_permitted, volume().unlink(directory, "f"));
  EXPECT_CODE(not_permitted, volume().rename(directory, "f", root, "f", fs::RenameMode::replace));
  EXPECT_CODE(not_permitted,
              volume().rename(directory, "f", directory, "h", fs::RenameMode::replace));
}

TEST_F(VolumeAttributes, unknown_flags_are_refused) {
  EXPECT_CODE(unsupported, volume().set_flags(root, 1u << 31));
  NACRE_EXPECT_OK(volume().set_flags(root, metadata::inode_flag_no_dump));
  EXPECT_EQ(stat(root).flags, metadata::inode_flag_no_dump);
}

TEST_F(VolumeAttributes, space_comes_from_the_backing_directory) {
  backing_->set_capacity(1u << 30);
  make_file(root, "f");
  const auto space = volume().space();
  NACRE_ASSERT_OK(space);
  EXPECT_EQ(space->total_bytes, 1u << 30);
  EXPECT_GT(space->free_bytes, 0u);
  EXPECT_LT(space->free_bytes, space->total_bytes);
  EXPECT_EQ(space->inode_count - space->free_inodes, 2u);
}

}  // namespace
}  // namespace nacre::tests
