// SPDX-License-Identifier: Apache-2.0
// Rows: what is encoded comes back; whatever else a decoder is given, it gives corrupt or a row
// that encodes to those very bytes.
#include "metadata/format/rows.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <limits>
#include <random>

#include "gpu_engine/base/limits.h"

namespace nacre::metadata {

// Beside the others, where templates below find it.
static std::string encode(const ChunkMapRow& row) {
  if (row.lost) return encode(*row.lost);
  return row.hole ? encode(*row.hole) : encode(*row.chunk);
}

namespace {

constexpr auto u64_max = std::numeric_limits<std::uint64_t>::max();
constexpr auto u32_max = std::numeric_limits<std::uint32_t>::max();

// Rows are compared by their encoding, which is unique; that the encoding holds every field is
// shown by the tests below that change one field at a time.
template <typename Decode>
void expect_round_trip(const std::string& value, Decode decode) {
  const auto row = decode(value);
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ(encode(*row), value);
}

template <typename Decode>
void expect_error_or_same(const std::string& value, Decode decode) {
  const auto row = decode(value);
  if (row) {
    EXPECT_EQ(encode(*row), value);
  } else {
    EXPECT_EQ(row.error().code, ErrorCode::corrupt);
  }
}

// Tries every truncation, extension and change of one byte.
template <typename Decode>
void expect_robust(const std::string& value, Decode decode) {
  expect_round_trip(value, decode);
  for (std::size_t size = 0; size < value.size(); ++size) {
    const auto row = decode(std::string_view(value).substr(0, size));
    ASSERT_FALSE(row) << "cut off after " << size;
    EXPECT_EQ(row.error().code, ErrorCode::corrupt);
  }
  for (const char extra : {'\0', '\1', '\x7f', '\x80'})
    EXPECT_FALSE(decode(value + extra));
  for (std::size_t at = 0; at < value.size(); ++at) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::string changed = value;
      changed[at] = static_cast<char>(byte);
      expect_error_or_same(changed, decode);
    }
  }
}

template <typename Decode>
void expect_random_bytes_never_crash(Decode decode) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string value(random() % 64, '\0');
    for (char& byte : value)
      byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
    if (!value.empty()) value[0] = 1;
    expect_error_or_same(value, decode);
  }
}

InodeRow typical_inode() {
  return {.mode = S_IFREG | 0644,
          .uid = 1000,
          .gid = 1000,
          .link_count = 1,
          .size = 123'456,
          .data_bytes = 131'072,
          .accessed = {1'700'000'000, 123'456'789},
          .modified = {1'700'000'001, 999'999'999},
          .changed = {1'700'000'002, 0},
          .born = {1'600'000'000, 1},
          .symlink_target = ""};
}

InodeRow extreme_inode() {
  return {.mode = 0177777,
          .uid = u32_max,
          .gid = u32_max,
          .link_count = u32_max,
          .flags = u32_max,
          .rdev = u64_max,
          .size = u64_max,
          .data_bytes = u64_max,
          .parent = {u64_max},
          .accessed = {std::numeric_limits<std::int64_t>::min(), 999'999'999},
          .modified = {std::numeric_limits<std::int64_t>::max(), 999'999'999},
          .changed = {-1, 0},
          .born = {-62'135'596'800, 1},
          .symlink_target = std::string(symlink_size_bytes_max, '\xff')};
}

TEST(InodeRow, comes_back_with_every_field) {
  const InodeRow row = extreme_inode();
  const auto decoded = decode_inode_row(encode(row));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->mode, row.mode);
  EXPECT_EQ(decoded->uid, row.uid);
  EXPECT_EQ(decoded->gid, row.gid);
  EXPECT_EQ(decoded->link_count, row.link_count);
  EXPECT_EQ(decoded->flags, row.flags);
  EXPECT_EQ(decoded->rdev, row.rdev);
  EXPECT_EQ(decoded->size, row.size);
  EXPECT_EQ(decoded->data_bytes, row.data_bytes);
  EXPECT_EQ(decoded->parent, row.parent);
  EXPECT_EQ(decoded->accessed, row.accessed);
  EXPECT_EQ(decoded->modified, row.modified);
  EXPECT_EQ(decoded->changed, row.changed);
  EXPECT_EQ(decoded->born, row.born);
  EXPECT_EQ(decoded->symlink_target, row.symlink_target);
  // Fields that hold one value in the row above must not be mixed up either.
  InodeRow distinct = typical_inode();
  distinct.uid = 1;
  distinct.gid = 2;
  distinct.link_count = 3;
  distinct.flags = 4;
  distinct.rdev = 5;
  distinct.size = 6;
  distinct.data_bytes = 7;
  distinct.parent = {8};
  const auto again = decode_inode_row(encode(distinct));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->uid, 1u);
  EXPECT_EQ(again->gid, 2u);
  EXPECT_EQ(again->link_count, 3u);
  EXPECT_EQ(again->flags, 4u);
  EXPECT_EQ(again->rdev, 5u);
  EXPECT_EQ(again->size, 6u);
  EXPECT_EQ(again->data_bytes, 7u);
  EXPECT_EQ(again->parent.value, 8u);
}

TEST(InodeRow, survives_every_damage_of_one_byte) {
  expect_robust(encode(typical_inode()), decode_inode_row);
  expect_robust(encode(InodeRow{}), decode_inode_row);
  InodeRow link = typical_inode();
  link.symlink_target = "../target";
  expect_robust(encode(link), decode_inode_row);
  expect_round_trip(encode(extreme_inode()), decode_inode_row);
  expect_random_bytes_never_crash(decode_inode_row);
}

TEST(InodeRow, is_refused_beyond_its_bounds) {
  InodeRow row = typical_inode();
  row.born.nanoseconds = 1'000'000'000;
  EXPECT_EQ(decode_inode_row(encode(row)).error().code, ErrorCode::corrupt);
  row = typical_inode();
  row.symlink_target.assign(symlink_size_bytes_max + 1, 'x');
  EXPECT_FALSE(decode_inode_row(encode(row)));
  row = typical_inode();
  row.mode = 0200000;
  EXPECT_FALSE(decode_inode_row(encode(row)));
}

TEST(InodeRow, stays_small) {
  EXPECT_LE(encode(typical_inode()).size(), 64u);
}

TEST(DentryRow, comes_back_and_survives_every_damage_of_one_byte) {
  for (const std::uint64_t inode : {std::uint64_t{1}, std::uint64_t{300}, u64_max}) {
    const std::string value = encode(DentryRow{.inode = {inode}, .type = DT_SOCK});
    const auto row = decode_dentry_row(value);
    ASSERT_TRUE(row);
    EXPECT_EQ(row->inode.value, inode);
    EXPECT_EQ(row->type, DT_SOCK);
    expect_robust(value, decode_dentry_row);
  }
  EXPECT_FALSE(decode_dentry_row(encode(DentryRow{.inode = {0}, .type = DT_REG})));
  EXPECT_FALSE(decode_dentry_row(encode(DentryRow{.inode = {1}, .type = 16})));
  expect_random_bytes_never_crash(decode_dentry_row);
}

constexpr RecordVersion version_of(std::uint64_t session, std::uint64_t place) {
  return {session << record_version_session_shift | place};
}

ChunkBase typical_base() {
  return {.location = {.segment = {12}, .offset = 20'000'000, .stored_size = 30'000},
          .version = version_of(3, 70'000),
          .plain_size = chunk_size_bytes_default,
          .valid_size = chunk_size_bytes_default};
}

ChunkPatch typical_patch() {
  return {.offset = 4096,
          .plain_size = 4096,
          .valid_size = 4000,
          .version = version_of(3, 70'001),
          .location = RecordLocation{.segment = {13}, .offset = 64, .stored_size = 4200}};
}

TEST(ChunkRow, comes_back_with_every_field) {
  ChunkRow row;
  row.base = ChunkBase{.location = {.segment = {u64_max},
                                    .offset = (1ull << 63) - 1 - u32_max,
                                    .stored_size = u32_max},
                       .version = {u64_max},
                       .plain_size = chunk_size_bytes_max,
                       .valid_size = 0};
  row.patches.push_back(typical_patch());
  row.patches.push_back({.offset = chunk_size_bytes_max - 1,
                         .plain_size = 1,
                         .valid_size = 1,
                         .version = {0},
                         .location = std::nullopt});
  const auto decoded = decode_chunk_map_row(encode(row));
  ASSERT_TRUE(decoded);
  ASSERT_TRUE(decoded->chunk && !decoded->hole);
  ASSERT_TRUE(decoded->chunk->base);
  EXPECT_EQ(decoded->chunk->base->location, row.base->location);
  EXPECT_EQ(decoded->chunk->base->version, row.base->version);
  EXPECT_EQ(decoded->chunk->base->plain_size, row.base->plain_size);
  EXPECT_EQ(decoded->chunk->base->valid_size, row.base->valid_size);
  ASSERT_EQ(decoded->chunk->patches.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(decoded->chunk->patches[i].offset, row.patches[i].offset);
    EXPECT_EQ(decoded->chunk->patches[i].plain_size, row.patches[i].plain_size);
    EXPECT_EQ(decoded->chunk->patches[i].valid_size, row.patches[i].valid_size);
    EXPECT_EQ(decoded->chunk->patches[i].version, row.patches[i].version);
    EXPECT_EQ(decoded->chunk->patches[i].location, row.patches[i].location);
  }
}

TEST(ChunkRow, survives_every_damage_of_one_byte) {
  ChunkRow row;
  expect_robust(encode(row), decode_chunk_map_row);
  row.base = typical_base();
  expect_robust(encode(row), decode_chunk_map_row);
  row.patches = {typical_patch(), typical_patch()};
  row.patches[1].location.reset();
  expect_robust(encode(row), decode_chunk_map_row);
  row.base.reset();
  expect_robust(encode(row), decode_chunk_map_row);
  row.lost = {{0, 1}, {2, 300}, {chunk_size_bytes_max - 1, 1}};
  expect_robust(encode(row), decode_chunk_map_row);
  row.patches.clear();
  row.lost = {{5, chunk_size_bytes_max - 5}};
  expect_robust(encode(row), decode_chunk_map_row);
  row.base = typical_base();
  expect_robust(encode(row), decode_chunk_map_row);
  row.patches.assign(patch_count_max, typical_patch());
  expect_round_trip(encode(row), decode_chunk_map_row);
  expect_random_bytes_never_crash(decode_chunk_map_row);
}

TEST(ChunkRow, is_refused_beyond_its_bounds) {
  const auto refused = [](auto change) {
    ChunkRow row;
    row.base = typical_base();
    row.patches.push_back(typical_patch());
    change(row);
    const auto decoded = decode_chunk_map_row(encode(row));
    return !decoded && decoded.error().code == ErrorCode::corrupt;
  };
  EXPECT_FALSE(refused([](ChunkRow&) {}));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.patches.assign(patch_count_max + 1, r.patches[0]); }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.base->plain_size = chunk_size_bytes_max + 1; }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.base->valid_size = r.base->plain_size + 1; }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.base->location.segment = {0}; }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.base->location.stored_size = 0; }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.base->location.offset = (1ull << 63) - 1; }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.patches[0].valid_size = 0; }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.patches[0].valid_size = r.patches[0].plain_size + 1; }));
  EXPECT_TRUE(refused([](ChunkRow& r) { r.patches[0].offset = chunk_size_bytes_max - 4095; }));
}

TEST(ChunkRow, comes_back_with_its_lost_ranges) {
  ChunkRow row;
  row.base = typical_base();
  row.lost = {{7, 1}, {4096, 100}, {chunk_size_bytes_max - 3, 3}};
  const auto decoded = decode_chunk_map_row(encode(row));
  ASSERT_TRUE(decoded && decoded->chunk);
  EXPECT_EQ(decoded->chunk->lost, row.lost);
  EXPECT_TRUE(decoded->chunk->base);
}

TEST(ChunkRow, is_refused_when_lost_ranges_touch_or_reach_past_the_largest_chunk) {
  const auto refused = [](std::vector<LostRange> lost) {
    ChunkRow row;
    row.lost = std::move(lost);
    const auto decoded = decode_chunk_map_row(encode(row));
    return !decoded && decoded.error().code == ErrorCode::corrupt;
  };
  EXPECT_FALSE(refused({{0, 1}, {2, 1}}));
  EXPECT_TRUE(refused({{0, 1}, {1, 1}}));
  EXPECT_TRUE(refused({{0, 0}}));
  EXPECT_TRUE(refused({{0, chunk_size_bytes_max + 1}}));
  EXPECT_TRUE(refused({{1, chunk_size_bytes_max}}));
  EXPECT_TRUE(refused({{0, 1}, {chunk_size_bytes_max, 1}}));
  EXPECT_TRUE(refused({{0, u32_max}}));
}

TEST(LostRow, comes_back_and_survives_every_damage_of_one_byte) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{1} << 40, u64_max}) {
    const std::string value = encode(LostRow{.chunk_count = count});
    const auto row = decode_chunk_map_row(value);
    ASSERT_TRUE(row);
    ASSERT_TRUE(row->lost && !row->hole && !row->chunk);
    EXPECT_EQ(row->lost->chunk_count, count);
    expect_robust(value, decode_chunk_map_row);
  }
  EXPECT_FALSE(decode_chunk_map_row(encode(LostRow{.chunk_count = 0})));
}

TEST(ChunkRow, stays_small) {
  ChunkRow row;
  row.base = typical_base();
  EXPECT_LE(encode(row).size(), 22u);
}

TEST(HoleRow, comes_back_and_survives_every_damage_of_one_byte) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{1} << 40, u64_max}) {
    const std::string value = encode(HoleRow{.chunk_count = count});
    const auto row = decode_chunk_map_row(value);
    ASSERT_TRUE(row);
    ASSERT_TRUE(row->hole && !row->chunk);
    EXPECT_EQ(row->hole->chunk_count, count);
    expect_robust(value, decode_chunk_map_row);
  }
  EXPECT_FALSE(decode_chunk_map_row(encode(HoleRow{.chunk_count = 0})));
}

TEST(SegmentRow, comes_back_and_survives_every_damage_of_one_byte) {
  SegmentRow row{.committed_size = u64_max, .live_bytes = 300, .epoch = u32_max};
  for (std::size_t i = 0; i < row.salt.size(); ++i)
    row.salt[i] = static_cast<Byte>(0xf0 + i);
  const auto decoded = decode_segment_row(encode(row));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->committed_size, row.committed_size);
  EXPECT_EQ(decoded->live_bytes, row.live_bytes);
  EXPECT_EQ(decoded->epoch, row.epoch);
  EXPECT_EQ(decoded->salt, row.salt);
  expect_robust(encode(row), decode_segment_row);
  expect_robust(encode(SegmentRow{}), decode_segment_row);
  expect_random_bytes_never_crash(decode_segment_row);
}

TEST(SessionRow, comes_back_and_survives_every_damage_of_one_byte) {
  for (const std::int64_t seconds : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const SessionRow row{.ordinal = (1u << 24) - 1, .epoch = 7, .opened_seconds = seconds};
    const auto decoded = decode_session_row(encode(row));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(decoded->ordinal, row.ordinal);
    EXPECT_EQ(decoded->epoch, row.epoch);
    EXPECT_EQ(decoded->opened_seconds, row.opened_seconds);
    expect_robust(encode(row), decode_session_row);
  }
  EXPECT_FALSE(decode_session_row(encode(SessionRow{.ordinal = 0})));
  EXPECT_FALSE(decode_session_row(encode(SessionRow{.ordinal = 1u << 24})));
  expect_random_bytes_never_crash(decode_session_row);
}

TEST(CounterRow, has_one_encoding_for_each_number) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    for (const std::uint64_t number : {(1ull << bits) - 1, 1ull << bits, (1ull << bits) + 1}) {
      const auto decoded = decode_u64(encode_u64(number));
      ASSERT_TRUE(decoded) << number;
      EXPECT_EQ(*decoded, number);
    }
  }
  EXPECT_EQ(decode_u64(encode_u64(u64_max)).value(), u64_max);
  EXPECT_FALSE(decode_u64(std::string("\1\x80\0", 3)));                         // zero in two bytes
  EXPECT_FALSE(decode_u64(std::string("\1") + std::string(9, '\xff') + "\2"));  // 2^64
  EXPECT_FALSE(decode_u64(std::string("\1") + std::string(10, '\xff') + "\1"));  // 11 bytes
  EXPECT_FALSE(decode_u64(std::string("\2\1", 2)));                              // version 2
  EXPECT_FALSE(decode_u64(""));
}

}  // namespace
}  // namespace nacre::metadata
