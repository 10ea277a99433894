// SPDX-License-Identifier: Apache-2.0
// The formats of checkpoints: what is written is read, and nothing else is.
#include <random>

#include <gtest/gtest.h>

#include "metadata/format/checkpoint_stream.h"
#include "tests/support/error_of.h"

namespace nacre::metadata {
namespace {

struct Row {
  CheckpointSection section;
  std::string key, value;
  bool operator==(const Row&) const = default;
};

struct Stream {
  CheckpointRoot root;
  std::vector<Bytes> parts;
};

Stream write(const std::vector<Row>& rows) {
  Stream stream;
  CheckpointWriter writer;
  const auto take = [&] {
    for (ByteView part = writer.next_part(); !part.empty(); part = writer.next_part()) {
      stream.parts.emplace_back(part.begin(), part.end());
      stream.root.parts.push_back({.version = {stream.parts.size()},
                                   .plain_size = static_cast<std::uint32_t>(part.size())});
      stream.root.stream_size += part.size();
    }
  };
  for (std::size_t i = 0; i < checkpoint_section_count; ++i) {
    const auto section = static_cast<CheckpointSection>(i + 1);
    writer.begin_section(section);
    for (const Row& row : rows) {
      if (row.section != section) continue;
      writer.add_row(row.key, row.value);
      ++stream.root.row_counts[i];
      take();
    }
    writer.end_section();
  }
  writer.end_stream();
  take();
  return stream;
}

Result<std::vector<Row>> read(const Stream& stream) {
  std::vector<Row> rows;
  NACRE_TRY(read_checkpoint(
      stream.root, [&](std::size_t i) -> Result<Bytes> { return stream.parts.at(i); },
      [&](CheckpointSection section, std::string_view key, std::string_view value) -> Result<> {
        rows.push_back({section, std::string(key), std::string(value)});
        return {};
      }));
  return rows;
}

std::vector<Row> some_rows(std::size_t value_size_max) {
  std::mt19937 random(7);
  std::vector<Row> rows;
  for (std::uint8_t section = 1; section <= checkpoint_section_count; ++section) {
    if (section == 5) continue;  // a section without rows
    for (int i = 0; i < 50; ++i) {
      std::string value(random() % (value_size_max + 1), '\0');
      for (char& c : value)
        c = static_cast<char>(random());
      rows.push_back({static_cast<CheckpointSection>(section),
                      inode_key({10u * i + 1u}) + std::string(i % 3, 'x'), value});
    }
  }
  return rows;
}

TEST(CheckpointStream, rows_are_read_as_they_were_written) {
  for (const std::size_t size : {0u, 1u, 100u, 70'000u}) {
    const auto rows = some_rows(size);
    const auto stream = write(rows);
    const auto found = read(stream);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(*found, rows);
    EXPECT_EQ(stream.parts.size(), (stream.root.stream_size + checkpoint_part_size_bytes - 1) /
                                       checkpoint_part_size_bytes);
  }
}

TEST(CheckpointStream, a_row_may_cross_several_parts) {
  const std::vector<Row> rows = {
      {CheckpointSection::inlined, "k", std::string(3 * checkpoint_part_size_bytes, 'v')}};
  const auto stream = write(rows);
  EXPECT_EQ(stream.parts.size(), 4u);
  EXPECT_EQ(read(stream).value(), rows);
}

// Whatever byte of it is another one, it is refused or gives other rows; it never ends in a crash.
TEST(CheckpointStream, changed_bytes_do_no_harm) {
  const auto rows = some_rows(3);
  auto stream = write(rows);
  ASSERT_EQ(stream.parts.size(), 1u);
  for (std::size_t at = 0; at < stream.parts[0].size(); ++at) {
    for (const Byte bit : {Byte{0x01}, Byte{0x80}, Byte{0xff}}) {
      stream.parts[0][at] ^= bit;
      const auto found = read(stream);
      EXPECT_TRUE(!found || *found != rows) << at;
      stream.parts[0][at] ^= bit;
    }
  }
}

TEST(CheckpointStream, one_that_is_cut_or_longer_is_corrupt) {
  const auto stream = write(some_rows(3));
  for (std::size_t size = 1; size < stream.parts[0].size(); ++size) {
    Stream cut = stream;
    cut.parts[0].resize(size);
    cut.root.parts[0].plain_size = static_cast<std::uint32_t>(size);
    cut.root.stream_size = size;
    EXPECT_EQ(read(cut).error().code, ErrorCode::corrupt) << size;
  }
  Stream longer = stream;
  longer.parts[0].push_back(0);
  ++longer.root.parts[0].plain_size;
  EXPECT_EQ(read(longer).error().code, ErrorCode::corrupt);
  Stream miscounted = stream;
  ++miscounted.root.row_counts[0];
  EXPECT_EQ(read(miscounted).error().code, ErrorCode::corrupt);
}

CheckpointPlace place(std::uint64_t n, std::uint32_t size) {
  return {.location = {{n}, 64 * n, 1000}, .version = {(3ull << 40) + n}, .plain_size = size};
}

TEST(CheckpointRows, row_and_root_are_read_as_they_were_written) {
  const CheckpointRow row{.closed_session = 9,
                          .root = place(4, 77),
                          .parts = {place(5, checkpoint_part_size_bytes), place(6, 1)}};
  const std::string value = encode(row);
  const auto found = decode_checkpoint_row(value);
  ASSERT_TRUE(found);
  EXPECT_EQ(encode(*found), value);
  EXPECT_EQ(found->parts[1].location, row.parts[1].location);
  EXPECT_EQ(found->closed_session, 9u);

  const CheckpointRoot root{.written_seconds = -5,
                            .settled = {(7ull << 40) + 1},
                            .row_counts = {1, 2, 3, 4, 5, 6, 7},
                            .stream_size = checkpoint_part_size_bytes + 9,
                            .parts = {{{1}, checkpoint_part_size_bytes}, {{2}, 9}}};
  const std::string plain = encode(root);
  const auto decoded = decode_checkpoint_root(plain);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encode(*decoded), plain);
  EXPECT_EQ(decoded->settled, root.settled);

  for (const std::string& bytes : {value, plain}) {
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_checkpoint_row(std::string_view(bytes).substr(0, size))) << size;
      EXPECT_FALSE(decode_checkpoint_root(std::string_view(bytes).substr(0, size))) << size;
    }
    EXPECT_FALSE(decode_checkpoint_row(bytes + '\0'));
    EXPECT_FALSE(decode_checkpoint_root(bytes + '\0'));
  }
}

TEST(CheckpointRows, a_root_whose_parts_do_not_add_up_is_corrupt) {
  CheckpointRoot root{.stream_size = 10, .parts = {{{1}, 9}}};
  EXPECT_FALSE(decode_checkpoint_root(encode(root)));
  root.stream_size = 9;
  EXPECT_TRUE(decode_checkpoint_root(encode(root)));
  root.parts = {{{1}, 4}, {{2}, 5}};  // a short part that is not the last
  EXPECT_FALSE(decode_checkpoint_root(encode(root)));
}

TEST(CheckpointRows, keys_sort_by_number) {
  EXPECT_LT(checkpoint_key({255}), checkpoint_key({256}));
  EXPECT_EQ(decode_checkpoint_key(checkpoint_key({1ull << 50}))->value, 1ull << 50);
  EXPECT_FALSE(decode_checkpoint_key("checkpoint/"));
  EXPECT_FALSE(decode_checkpoint_key(checkpoint_key({1}) + "x"));
  EXPECT_FALSE(decode_checkpoint_key("session/12345678"));
}

}  // namespace
}  // namespace nacre::metadata
