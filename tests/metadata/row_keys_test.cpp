// SPDX-License-Identifier: Apache-2.0
// Keys of rows: they sort as the tables need, and come back from their bytes. Also what names a
// record and a segment within their files.
#include <gtest/gtest.h>

#include <limits>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"
#include "metadata/format/rows.h"

namespace nacre::metadata {
namespace {

constexpr auto number_max = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t numbers[] = {1, 2, 0xff, 0x100, 0xffff'ffff, 1ull << 32, number_max};

TEST(RowKeys, sort_by_number) {
  for (std::size_t i = 1; i < std::size(numbers); ++i) {
    EXPECT_LT(inode_key({numbers[i - 1]}), inode_key({numbers[i]}));
    EXPECT_LT(segment_key({numbers[i - 1]}), segment_key({numbers[i]}));
    EXPECT_LT(chunk_key({7}, {numbers[i - 1]}), chunk_key({7}, {numbers[i]}));
    EXPECT_LT(chunk_key({numbers[i - 1]}, {number_max}), chunk_key({numbers[i]}, {0}));
    EXPECT_LT(inlined_key({1}, {1}, {numbers[i - 1]}, 9), inlined_key({1}, {1}, {numbers[i]}, 0));
    EXPECT_LT(dentry_key({1}, numbers[i - 1], "z"), dentry_key({1}, numbers[i], "a"));
    EXPECT_LE(dentry_key({1}, numbers[i - 1], "z"), dentry_seek_key({1}, numbers[i]));
  }
  EXPECT_LE(dentry_seek_key({1}, 5), dentry_key({1}, 5, "a"));
}

TEST(RowKeys, come_back) {
  for (const std::uint64_t number : numbers) {
    EXPECT_EQ(decode_inode_key(inode_key({number}))->value, number);
    EXPECT_EQ(decode_inode_key(orphan_key({number}))->value, number);
    EXPECT_EQ(decode_segment_key(segment_key({number}))->value, number);
    const auto chunk = decode_chunk_key(chunk_key({number}, {number - 1}));
    ASSERT_TRUE(chunk);
    EXPECT_EQ(chunk->inode.value, number);
    EXPECT_EQ(chunk->index.value, number - 1);
    const auto inlined = decode_inlined_key(inlined_key({number}, {5}, {number}, 0xdeadbeef));
    ASSERT_TRUE(inlined);
    EXPECT_EQ(inlined->inode.value, number);
    EXPECT_EQ(inlined->index.value, 5u);
    EXPECT_EQ(inlined->version.value, number);
    EXPECT_EQ(inlined->offset, 0xdeadbeef);
  }
  const std::string name(name_size_bytes_max, 'n');
  const std::string key = dentry_key({9}, number_max >> 1, name);
  const auto dentry = decode_dentry_key(key);
  ASSERT_TRUE(dentry);
  EXPECT_EQ(dentry->parent.value, 9u);
  EXPECT_EQ(dentry->name_hash, number_max >> 1);
  EXPECT_EQ(dentry->name, name);
}

TEST(RowKeys, begin_with_their_prefix) {
  EXPECT_TRUE(dentry_key({7}, 9, "n").starts_with(dentry_prefix({7})));
  EXPECT_TRUE(chunk_key({7}, {9}).starts_with(chunk_prefix({7})));
  EXPECT_TRUE(inlined_key({7}, {9}, {1}, 2).starts_with(inlined_prefix({7})));
  EXPECT_EQ(xattr_key({7}, "user.x"), xattr_prefix({7}) + "user.x");
  engine::SessionSalt salt;
  salt.fill(0xab);
  EXPECT_EQ(session_key_of(salt), "session/" + std::string(16, '\xab'));
}

TEST(RowKeys, prefix_end_is_the_first_key_after) {
  EXPECT_EQ(prefix_end("a"), "b");
  EXPECT_EQ(prefix_end("a\xff\xff"), "b");
  EXPECT_EQ(prefix_end("\xff\xff"), "");
  EXPECT_EQ(prefix_end(""), "");
  EXPECT_GT(prefix_end(chunk_prefix({0xff})), chunk_key({0xff}, {number_max}));
  EXPECT_LE(prefix_end(chunk_prefix({0xff})), chunk_key({0x100}, {0}));
}

TEST(RowKeys, of_the_wrong_shape_are_refused) {
  const std::string eight(8, '\1');
  for (std::size_t size = 0; size < 40; ++size) {
    const std::string key(size, '\1');
    EXPECT_EQ(decode_inode_key(key).has_value(), size == 8);
    EXPECT_EQ(decode_segment_key(key).has_value(), size == 8);
    EXPECT_EQ(decode_chunk_key(key).has_value(), size == 16);
    EXPECT_EQ(decode_inlined_key(key).has_value(), size == 28);
    EXPECT_EQ(decode_dentry_key(key).has_value(), size > 16);
  }
  EXPECT_EQ(decode_inode_key(inode_key({0})).error().code, ErrorCode::corrupt);
  EXPECT_FALSE(decode_segment_key(segment_key({0})));
  EXPECT_FALSE(decode_chunk_key(chunk_key({0}, {1})));
  EXPECT_FALSE(decode_inlined_key(inlined_key({0}, {1}, {1}, 1)));
  EXPECT_TRUE(decode_dentry_key(dentry_key({1}, 3, "a")));
  EXPECT_FALSE(decode_dentry_key(dentry_key({0}, 3, "a")));
  EXPECT_FALSE(decode_dentry_key(dentry_key({1}, 2, "a")));
  EXPECT_FALSE(decode_dentry_key(dentry_key({1}, 1ull << 63, "a")));
  for (const std::string name : {"", ".", "..", "a/b"}) {
    EXPECT_FALSE(decode_dentry_key(dentry_key({1}, 3, name))) << name;
  }
  EXPECT_FALSE(decode_dentry_key(dentry_key({1}, 3, std::string(1, '\0'))));
  EXPECT_FALSE(decode_dentry_key(dentry_key({1}, 3, std::string(name_size_bytes_max + 1, 'x'))));
}

TEST(RecordName, comes_back) {
  for (const RecordName name :
       {RecordName{.inode = {1}, .chunk = {0}, .version = {0}}, RecordName{.inode = {number_max},
                                                                .chunk = {number_max},
                                                                .version = {number_max},
                                                                .offset = chunk_size_bytes_max - 1,
                                                                .kind = RecordKind::patch}}) {
    const auto decoded = decode_record_name(encode(name));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, name);
  }
}

TEST(RecordName, is_an_error_or_itself_after_any_change_of_one_byte) {
  const RecordName name{
      .inode = {5}, .chunk = {6}, .version = {7}, .offset = 8, .kind = RecordKind::patch};
  const auto identity = encode(name);
  for (std::size_t at = 0; at < identity.size(); ++at) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      auto changed = identity;
      changed[at] = static_cast<Byte>(byte);
      const auto decoded = decode_record_name(changed);
      if (decoded) {
        EXPECT_EQ(encode(*decoded), changed);
      } else {
        EXPECT_EQ(decoded.error().code, ErrorCode::corrupt);
      }
    }
  }
  EXPECT_FALSE(decode_record_name(encode(RecordName{.inode = {0}})));
  EXPECT_FALSE(decode_record_name(encode(RecordName{.inode = {1}, .offset = 1})));
}

SegmentHeader some_header() {
  SegmentHeader header{.segment = {0x0102030405060708}, .epoch = 0x11121314};
  header.volume_id.fill(0xaa);
  header.salt.fill(0xbb);
  return header;
}

TEST(SegmentHeader, comes_back) {
  const auto bytes = encode(some_header());
  const auto decoded = decode_segment_header(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->volume_id, some_header().volume_id);
  EXPECT_EQ(decoded->segment, some_header().segment);
  EXPECT_EQ(decoded->salt, some_header().salt);
  EXPECT_EQ(decoded->epoch, some_header().epoch);
  EXPECT_EQ(as_text(ByteView(bytes).first(4)), "NSEG");
}

TEST(SegmentHeader, is_refused_after_any_change_and_when_cut_off) {
  const auto bytes = encode(some_header());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto changed = bytes;
      changed[at] = static_cast<Byte>(changed[at] ^ (1u << bit));
      EXPECT_EQ(decode_segment_header(changed).error().code, ErrorCode::corrupt) << at;
    }
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_segment_header(ByteView(bytes).first(size)));
  }
}

TEST(SegmentHeader, of_a_newer_version_is_unsupported) {
  auto bytes = encode(some_header());
  bytes[4] = 2;
  store_le(bytes.data() + 52, engine::crc32(0, ByteView(bytes).first(52)));
  EXPECT_EQ(decode_segment_header(bytes).error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace nacre::metadata
