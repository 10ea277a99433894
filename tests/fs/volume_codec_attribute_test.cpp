// SPDX-License-Identifier: Apache-2.0
// user.nacre.codec: the codec that a file or a directory asks for.
#include "tests/fs/volume_fixture.h"

#include "metadata/format/inode_codec.h"
#include "metadata/tables/database.h"

namespace nacre::tests {
namespace {

using engine::Codec;
using fs::InodeNumber;
using fs::XattrMode;

constexpr std::string_view name = metadata::inode_codec_name;

class VolumeCodecAttribute : public VolumeTest {
 protected:
  Result<> set(InodeNumber inode, std::string_view value, XattrMode mode = XattrMode::set) {
    return volume().set_xattr(inode, name, value, mode, false);
  }
  std::string get(InodeNumber inode) { return volume().get_xattr(inode, name).value_or("-"); }
  std::uint64_t records_of(Codec codec) {
    return mounted().stats().segments.codecs[static_cast<std::size_t>(codec)].record_count;
  }
  const std::string text_ = std::string(64u << 10, 'a');  // four chunks
};

TEST_F(VolumeCodecAttribute, comes_back_as_it_was_given) {
  const InodeNumber file = make_file(root, "f");
  EXPECT_EQ(get(file), "-");
  for (const std::string text : {"none", "lz77", "zstd:7", "auto", "gdeflate:9", "rle", "lzw:1"}) {
    NACRE_EXPECT_OK(set(file, text));
    EXPECT_EQ(get(file), text);
    remount();
    ASSERT_EQ(find(root, "f"), file);
    EXPECT_EQ(get(file), text);
    EXPECT_EQ(volume().list_xattrs(file).value(), std::vector<std::string>{std::string(name)});
  }
  NACRE_EXPECT_OK(volume().remove_xattr(file, name));
  EXPECT_EQ(get(file), "-");
  EXPECT_CODE(no_attribute, volume().remove_xattr(file, name));
  EXPECT_TRUE(volume().list_xattrs(file).value().empty());
}

TEST_F(VolumeCodecAttribute, refuses_what_is_no_codec_and_keeps_the_old_one) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(set(file, "rle"));
  for (const std::string text : {"", "zip", "none:", "zstd:10", "zstd:-1", "zstd:7:1", "NONE"})
    EXPECT_CODE(invalid_argument, set(file, text));
  EXPECT_EQ(get(file), "rle");
  EXPECT_CODE(exists, set(file, "lzw", XattrMode::create));
  EXPECT_CODE(no_attribute, set(make_file(root, "g"), "lzw", XattrMode::replace));
}

TEST_F(VolumeCodecAttribute, is_what_chunks_are_sealed_with) {
  const InodeNumber plain = make_file(root, "plain");
  const InodeNumber ours = make_file(root, "ours");
  NACRE_EXPECT_OK(set(ours, "none"));
  write(plain, 0, text_);
  write(ours, 0, text_);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(records_of(Codec::lz77), 4u);
  EXPECT_EQ(records_of(Codec::none), 4u);
  // From now on.
  NACRE_EXPECT_OK(set(ours, "zstd:3"));
  write(ours, 0, text_);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(records_of(Codec::zstd), 4u);
  remount();
  ASSERT_EQ(find(root, "ours"), ours);
  EXPECT_EQ(read(ours), text_);
  write(ours, 0, text_);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(records_of(Codec::zstd), 4u) << "counted since the mount";
  EXPECT_EQ(records_of(Codec::none), 0u);
}

TEST_F(VolumeCodecAttribute, is_inherited_from_the_directory) {
  const InodeNumber folder = make_directory(root, "d");
  const InodeNumber before = make_file(folder, "before");
  NACRE_EXPECT_OK(set(folder, "none"));
  const InodeNumber below = make_directory(folder, "below");
  const InodeNumber file = make_file(below, "f");
  EXPECT_EQ(get(before), "-");
  EXPECT_EQ(get(below), "none");
  EXPECT_EQ(get(file), "none");
  const auto link = volume().make_symlink(below, "l", caller_, "f");
  NACRE_ASSERT_OK(link);
  EXPECT_EQ(get(link->inode), "-");
  write(file, 0, text_);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(records_of(Codec::none), 4u);
  EXPECT_EQ(records_of(Codec::lz77), 0u);
}

// Flags and codec share a field of the row.
TEST_F(VolumeCodecAttribute, and_flags_leave_each_other_alone) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(set(file, "auto:9"));
  NACRE_EXPECT_OK(volume().set_flags(file, metadata::inode_flag_no_atime));
  EXPECT_EQ(get(file), "auto:9");
  EXPECT_EQ(stat(file).flags, metadata::inode_flag_no_atime);
  NACRE_EXPECT_OK(volume().remove_xattr(file, name));
  EXPECT_EQ(stat(file).flags, metadata::inode_flag_no_atime);
  NACRE_EXPECT_OK(volume().set_flags(file, metadata::inode_flag_immutable));
  EXPECT_CODE(not_permitted, set(file, "none"));
  NACRE_EXPECT_OK(volume().set_flags(file, 0));
}

TEST_F(VolumeCodecAttribute, of_another_nacre_is_none_here) {
  EXPECT_FALSE(metadata::inode_codec(14u << 8));             // a codec that is not known
  EXPECT_FALSE(metadata::inode_codec(1u << 8 | 10u << 12));  // a level
  EXPECT_EQ(metadata::inode_codec(15u << 8 | 3u << 12),
            (metadata::InodeCodec{Codec::automatic, 3}));
  EXPECT_EQ(metadata::with_inode_codec(0xffff'00ff, metadata::InodeCodec{Codec::none, 0}),
            0xffff'01ffu);
}

}  // namespace
}  // namespace nacre::tests
