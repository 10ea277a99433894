// SPDX-License-Identifier: Apache-2.0
// Padding of the files under db/ in format 2: how much their lengths tell, and that only the
// padding that a writer makes is accepted. docs/FORMAT.md, "Padding".
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "gpu_engine/checksum/crc32.h"
#include "metadata/sealed_fs/database_scrub.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/page_layout.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using namespace metadata;
using engine::Padding;

constexpr std::string_view log_path = "db/000007.log";
constexpr std::string_view table_path = "db/000008.sst";

std::shared_ptr<const KeyTree> padded_keys() {
  return make_keys(7, EpochFormat::two);
}

std::uint64_t padme(std::uint64_t size) {
  return engine::padded_size(Padding::padme, size);
}

bool is_padme_length(std::uint64_t size) {
  return padme(size) == size;
}

std::vector<FrameHeader> frames_of(ByteView file) {
  const auto header = decode_file_header(file);
  EXPECT_TRUE(header);
  std::vector<FrameHeader> frames;
  for (std::size_t at = file_header_size_bytes;;) {
    const auto frame = parse_frame(*header, file.subspan(at));
    if (!frame) return frames;
    frames.push_back(frame->header);
    at += frame->stored_size;
  }
}

// The lengths that an attacker with the medium sees: of each file's frames, and of each table.
using Lengths = std::map<std::string, std::vector<std::uint64_t>>;
Lengths lengths_of(const MemoryBacking& backing) {
  Lengths lengths;
  for (const auto& path : backing.files()) {
    if (!path.starts_with("db/")) continue;
    const Bytes stored = *backing.load(path);
    auto& own = lengths[path];
    if (parse_file_name(path).file_class == FileClass::table) {
      own.push_back(stored.size() - first_page_offset);
      continue;
    }
    for (const FrameHeader& frame : frames_of(stored))
      own.push_back(frame.plain_size);
  }
  return lengths;
}

// Rows with names and values that have these lengths: some stay in the log, others get to a table.
Lengths lengths_after(std::size_t name_size, std::size_t value_size, Padding padding) {
  const auto backing = MemoryBacking::create();
  EXPECT_TRUE(backing->make_directory("db"));
  DatabaseOptions options = small_options();
  options.create = true;
  options.padding = padding;
  const auto write = [&](Database& database, int from) {
    for (int row = from; row < from + 3; row++) {
      std::string name = std::to_string(row);
      name.resize(name_size, 'n');
      std::string value(value_size, 'v');
      for (std::size_t i = 0; i < value.size(); i++)
        value[i] = static_cast<char>(i * 131 + i / 7);
      database.put(Table::dentries, name, value);
      EXPECT_TRUE(commit(database, true));
    }
  };
  {
    auto database = Database::open(backing, padded_keys(), options);
    EXPECT_TRUE(database) << database.error().message;
    write(**database, 10);
    EXPECT_TRUE((*database)->close());
  }
  options.create = false;
  auto database = Database::open(backing, padded_keys(), options);
  EXPECT_TRUE(database) << database.error().message;
  write(**database, 20);
  return lengths_of(*backing->process_kill());
}

TEST(DatabasePadding, lengths_of_names_and_values_do_not_show_in_those_of_files) {
  std::set<Lengths> seen;
  unsigned count = 0;
  for (std::size_t name_size = 2; name_size <= 62; name_size += 4) {
    for (const std::size_t value_size : {1000u, 1001u, 1002u, 1003u}) {
      const Lengths lengths = lengths_after(name_size, value_size, Padding::padme);
      EXPECT_FALSE(lengths.empty());
      for (const auto& [path, sizes] : lengths) {
        for (const std::uint64_t size : sizes)
          EXPECT_TRUE(is_padme_length(size)) << path << ": " << size;
      }
      seen.insert(lengths);
      count++;
    }
  }
  EXPECT_EQ(count, 64u);
  // 60 bytes more in each name: a row's frames grow by two steps of 64, those of the manifest,
  // which has names of rows twice, by eight of 16.
  EXPECT_LE(seen.size(), 12u);
}

TEST(DatabasePadding, without_it_each_byte_shows) {
  std::set<Lengths> seen;
  for (std::size_t value_size = 1000; value_size < 1008; value_size++)
    seen.insert(lengths_after(10, value_size, Padding::none));
  EXPECT_EQ(seen.size(), 8u);
}

TEST(DatabasePadding, tables_have_padme_lengths_too) {
  for (const std::uint64_t size :
       {0, 1, 4063, 4064, 4065, 100'000, 600'000, 1'000'000, 1'111'111}) {
    const auto backing = MemoryBacking::create();
    ASSERT_TRUE(backing->make_directory("db"));
    auto writer = PageWriter::create(*backing, table_path, *padded_keys(), Padding::padme);
    ASSERT_TRUE(writer);
    const Bytes content(size, Byte{5});
    ASSERT_TRUE((*writer)->append(content));
    ASSERT_TRUE((*writer)->close());
    const std::uint64_t stored = *backing->file_size(table_path);
    EXPECT_TRUE(is_padme_length(stored - first_page_offset)) << stored;
    EXPECT_EQ((stored - first_page_offset) % page_size_bytes, 0u);
    EXPECT_LE(stored, first_page_offset + 2 * page_size_bytes + size + size / 16) << size;
    const auto reader = PageReader::open(*backing, table_path, *padded_keys());
    ASSERT_TRUE(reader) << reader.error().message;
    ASSERT_EQ((*reader)->size(), size);
    Bytes read(size + 1);
    const auto got = (*reader)->read(0, read);
    ASSERT_TRUE(got);
    ASSERT_EQ(*got, size);
    read.resize(size);
    EXPECT_EQ(read, content);
    EXPECT_TRUE(scrub_database_file(*backing, table_path));
  }
}

// A group of many frames would tell its length to within one of them.
TEST(DatabasePadding, frames_that_are_written_at_once_have_a_padme_length_together) {
  for (const std::size_t size : {65'000u, 65'524u, 65'525u, 130'000u, 131'048u, 700'001u}) {
    const auto backing = MemoryBacking::create();
    ASSERT_TRUE(backing->make_directory("db"));
    FrameWriter writer(backing, *FileSeal::create(*padded_keys(), log_path, Padding::padme));
    ASSERT_TRUE(writer.open());
    writer.append_witness({});
    const Bytes content(size, Byte{9});
    ASSERT_TRUE(writer.append(content));
    ASSERT_TRUE(writer.sync());
    ASSERT_TRUE(writer.append(ByteView(content).first(1)));
    ASSERT_TRUE(writer.close());
    const auto frames = frames_of(*backing->load(log_path));
    std::uint64_t together = 0;
    for (std::size_t i = 1; i + 1 < frames.size(); i++)
      together += frames[i].plain_size;
    EXPECT_TRUE(is_padme_length(together)) << size << " bytes in " << together;
    EXPECT_LE(together, size + size / 8) << size;
    EXPECT_EQ(frames.back().plain_size, padded_frame_size(1));
    const auto read = read_frames(*backing, log_path, *padded_keys());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->plain.size(), size + 1);
    EXPECT_TRUE(scrub_database_file(*backing, log_path));
  }
}

void put_padded_byte(MemoryBacking& backing, std::string_view path, Byte value) {
  Bytes file = *backing.load(path);
  file[6] = value;
  store_le(&file[60], engine::crc32(0, ByteView(file).first(60)));
  backing.store(path, file);
}

TEST(DatabasePadding, whether_a_file_is_padded_is_bound_to_its_key) {
  for (const Padding padding : {Padding::none, Padding::padme}) {
    const auto backing = MemoryBacking::create();
    ASSERT_TRUE(backing->make_directory("db"));
    FrameWriter log(backing, *FileSeal::create(*padded_keys(), log_path, padding));
    ASSERT_TRUE(log.open());
    ASSERT_TRUE(log.append(Bytes(100)));
    ASSERT_TRUE(log.close());
    const auto table = PageWriter::create(*backing, table_path, *padded_keys(), padding);
    ASSERT_TRUE((*table)->append(Bytes(page_plain_bytes)));
    ASSERT_TRUE((*table)->close());
    ASSERT_TRUE(read_frames(*backing, log_path, *padded_keys()));
    ASSERT_TRUE(PageReader::open(*backing, table_path, *padded_keys()));
    for (const std::string_view path : {log_path, table_path})
      put_padded_byte(*backing, path, padding == Padding::none ? 1 : 0);
    const auto read = read_frames(*backing, log_path, *padded_keys());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::tampered) << read.error().message;
    const auto reader = PageReader::open(*backing, table_path, *padded_keys());
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().code, ErrorCode::tampered) << reader.error().message;
    put_padded_byte(*backing, log_path, 2);
    EXPECT_EQ(read_frames(*backing, log_path, *padded_keys()).error().code, ErrorCode::corrupt);
  }
}

TEST(DatabasePadding, format_1_knows_none) {
  const auto keys = make_keys(7, EpochFormat::one);
  const auto seal = FileSeal::create(*keys, log_path, Padding::padme);
  ASSERT_TRUE(seal);
  EXPECT_FALSE(seal->header().is_padded);
  auto bytes = encode(seal->header());
  bytes[6] = 1;
  store_le(&bytes[60], engine::crc32(0, ByteView(bytes).first(60)));
  EXPECT_EQ(decode_file_header(bytes).error().code, ErrorCode::corrupt);
}

// Only a holder of the key can make such frames. They are refused all the same.
TEST(DatabasePadding, what_no_writer_makes_is_refused) {
  const auto seal = FileSeal::create(*padded_keys(), log_path, Padding::padme);
  ASSERT_TRUE(seal);
  const auto outcome = [&](const Bytes& plain) {
    Bytes file;
    const auto header = encode(seal->header());
    file.assign(header.begin(), header.end());
    Bytes frame(frame_overhead_bytes + plain.size());
    const MutableByteView out(frame);
    encode_frame_header({.plain_size = static_cast<std::uint32_t>(plain.size())}, out);
    seal->seal(0, 0, out.first(frame_authenticated_bytes), plain,
               out.subspan(frame_header_size_bytes, plain.size()), out.last(frame_tag_size_bytes));
    store_le(&frame[frame_authenticated_bytes], frame_crc(seal->header().salt, frame));
    file.insert(file.end(), frame.begin(), frame.end());
    Bytes content;
    const auto walk = walk_frames(log_path, seal->header(), file, &*seal, &content);
    return walk ? std::optional<ErrorCode>() : walk.error().code;
  };
  Bytes plain(40);
  plain[0] = 10;  // of content, at position 0
  EXPECT_EQ(outcome(plain), std::nullopt);
  plain[padded_head_bytes + 10] = 1;
  EXPECT_EQ(outcome(plain), ErrorCode::tampered) << "something behind the content";
  plain[padded_head_bytes + 10] = 0;
  plain[4] = 1;
  EXPECT_EQ(outcome(plain), ErrorCode::tampered) << "another position";
  plain[4] = 0;
  plain[0] = 29;
  EXPECT_EQ(outcome(plain), ErrorCode::tampered) << "more content than there is room for";
  plain[0] = 28;
  EXPECT_EQ(outcome(plain), std::nullopt);
  plain[3] = 0xff;
  EXPECT_EQ(outcome(plain), ErrorCode::tampered) << "4 GiB of content";
  EXPECT_EQ(outcome(Bytes(padded_head_bytes - 1)), ErrorCode::tampered);
  EXPECT_EQ(outcome(Bytes()), ErrorCode::tampered);
}

TEST(DatabasePadding, the_size_of_a_table_must_be_that_of_its_padding) {
  const auto seal = FileSeal::create(*padded_keys(), table_path, Padding::padme);
  ASSERT_TRUE(seal);
  const auto outcome = [&](std::uint64_t size, Byte last_of_padding) {
    const auto backing = MemoryBacking::create();
    EXPECT_TRUE(backing->make_directory("db"));
    Bytes plain(page_plain_bytes);
    store_le(&plain[page_plain_bytes - padded_size_field_bytes], size);
    plain[page_plain_bytes - padded_size_field_bytes - 1] = last_of_padding;
    const auto header = encode(seal->header());
    Bytes file(header.begin(), header.end());
    Bytes page(page_size_bytes);
    std::array<Byte, 12> fields = {};
    store_le(&fields[8], page_final_bit);
    const MutableByteView out(page);
    seal->seal(0, 0, fields, plain, out.first(page_plain_bytes),
               out.subspan(page_plain_bytes, page_tag_size_bytes));
    store_le(&page[page_plain_bytes + page_tag_size_bytes], page_final_bit);
    const std::array<Byte, 8> index = {};
    store_le(&page[page_size_bytes - 4],
             engine::crc32(engine::crc32(engine::crc32(0, seal->header().salt), index),
                           ByteView(page).first(page_size_bytes - 4)));
    file.insert(file.end(), page.begin(), page.end());
    backing->store(table_path, file);
    const auto reader = PageReader::open(*backing, table_path, *padded_keys());
    return reader ? std::optional<ErrorCode>() : reader.error().code;
  };
  EXPECT_EQ(outcome(0, 0), std::nullopt);
  EXPECT_EQ(outcome(page_plain_bytes - padded_size_field_bytes, 7), std::nullopt);
  EXPECT_EQ(outcome(100, 1), ErrorCode::tampered);
  EXPECT_EQ(outcome(page_plain_bytes - padded_size_field_bytes + 1, 0), ErrorCode::tampered);
  EXPECT_EQ(outcome(~std::uint64_t{0}, 0), ErrorCode::tampered);
}

}  // namespace
}  // namespace nacre::tests
