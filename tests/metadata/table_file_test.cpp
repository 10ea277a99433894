// SPDX-License-Identifier: Apache-2.0
// Table files by themselves: what is written is read, and every change of a stored byte, page or
// size is told, as rot or as tampering.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/checksum/crc32.h"
#include "metadata/sealed_fs/database_scrub.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/page_layout.h"
#include "tests/metadata/sealed_files.h"

namespace nacre::tests {
namespace {

using namespace metadata;

Bytes write_table(MemoryBacking& backing, std::string_view path, std::size_t size,
                  std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  const Bytes content = random_bytes(random, size);
  auto writer = PageWriter::create(backing, path, *make_keys(), padding_under_test());
  EXPECT_TRUE(writer);
  EXPECT_TRUE((*writer)->append(content));
  EXPECT_TRUE((*writer)->sync());
  EXPECT_TRUE((*writer)->close());
  return content;
}

Result<Bytes> read_table(MemoryBacking& backing, std::string_view path, Byte id = 7) {
  NACRE_ASSIGN(auto reader, PageReader::open(backing, path, *make_keys(id)));
  Bytes content(reader->size());
  NACRE_ASSIGN(const std::size_t got, reader->read(0, content));
  content.resize(got);
  return content;
}

// Puts the CRC of a page right, as an attacker can who knows the format but no key.
void fix_page_crc(Bytes& file, std::uint64_t page) {
  const std::uint64_t begin = page_offset(page);
  const std::uint64_t end = std::min<std::uint64_t>(page_offset(page + 1), file.size());
  std::array<Byte, 8> index;
  store_le(index.data(), page);
  std::uint32_t crc = engine::crc32(0, ByteView(file).subspan(32, 16));
  crc = engine::crc32(crc, index);
  crc = engine::crc32(crc, ByteView(file).subspan(begin, end - begin - 4));
  store_le(&file[end - 4], crc);
}

void fix_header_crc(Bytes& file) {
  store_le(&file[60], engine::crc32(0, ByteView(file).first(60)));
}

TEST(TableFile, gives_back_what_was_appended_in_any_pieces) {
  constexpr std::size_t p = page_plain_bytes;
  const std::vector<std::size_t> sizes = {0, 1, 7, 31, p - 1, p, p + 1, 2 * p, 3 * p + 5, 300000};
  for (const std::size_t size : sizes) {
    for (std::uint64_t seed = 1; seed <= 4; seed++) {
      SCOPED_TRACE("size " + std::to_string(size) + " seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      auto backing = make_volume();
      const Bytes content = random_bytes(random, size);
      auto writer = PageWriter::create(*backing, table_path, *make_keys(), padding_under_test());
      ASSERT_TRUE(writer);
      ASSERT_TRUE(backing->sync_directory("db"));
      for (std::size_t at = 0; at < size;) {
        const std::size_t piece = std::min<std::size_t>(size - at, 1 + random() % (2 * p));
        ASSERT_TRUE((*writer)->append(ByteView(content).subspan(at, piece)));
        at += piece;
        // RocksDB syncs tables only at the end; in the middle it must be right as well.
        if (random() % 4 == 0) {
          ASSERT_TRUE((*writer)->sync());
          auto so_far = read_table(*backing->power_loss(0), table_path);
          ASSERT_TRUE(so_far) << so_far.error().message;
          ASSERT_TRUE(std::equal(so_far->begin(), so_far->end(), content.begin()));
          ASSERT_EQ(so_far->size(), at);
        }
      }
      ASSERT_TRUE((*writer)->close());
      ASSERT_EQ(backing->file_size(table_path), padding_under_test() == engine::Padding::none
                                                    ? stored_size_of(size)
                                                    : page_offset(padded_page_count(size)));
      auto reader = PageReader::open(*backing, table_path, *make_keys());
      ASSERT_TRUE(reader) << reader.error().message;
      ASSERT_EQ((*reader)->size(), size);
      for (int i = 0; i < 50; i++) {
        const std::uint64_t offset = random() % (size + 10);
        Bytes out(random() % (3 * p));
        auto got = (*reader)->read(offset, out);
        ASSERT_TRUE(got);
        ASSERT_EQ(*got, offset >= size ? 0 : std::min<std::uint64_t>(out.size(), size - offset));
        ASSERT_TRUE(std::equal(
            out.begin(), out.begin() + static_cast<std::ptrdiff_t>(*got),
            content.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(offset, size))));
      }
      ASSERT_TRUE(scrub_database_file(*backing, table_path));
    }
  }
}

TEST(TableFile, the_plain_text_is_not_in_it) {
  auto backing = make_volume();
  auto writer = PageWriter::create(*backing, table_path, *make_keys(), padding_under_test());
  const std::string secret = "a name that nobody may see";
  ASSERT_TRUE((*writer)->append(as_bytes(secret)));
  ASSERT_TRUE((*writer)->close());
  const Bytes stored = *backing->load(table_path);
  EXPECT_EQ(as_text(stored).find("name"), std::string_view::npos);
}

TEST(TableFile, every_flipped_bit_is_rot_and_the_scrub_sees_it) {
  auto backing = make_volume();
  write_table(*backing, table_path, 2 * page_plain_bytes + 100);
  const Bytes stored = *backing->load(table_path);
  for (std::size_t at = 0; at < stored.size(); at++) {
    Bytes changed = stored;
    changed[at] ^= static_cast<Byte>(1u << (at % 8));
    backing->store(table_path, changed);
    ASSERT_EQ(code_of(read_table(*backing, table_path)), ErrorCode::corrupt) << "byte " << at;
    ASSERT_EQ(code_of(scrub_database_file(*backing, table_path)), ErrorCode::corrupt)
        << "byte " << at;
  }
}

TEST(TableFile, a_change_with_a_matching_checksum_is_tampering) {
  auto backing = make_volume();
  write_table(*backing, table_path, 2 * page_plain_bytes + 100);
  const Bytes stored = *backing->load(table_path);
  for (std::size_t at = first_page_offset; at < stored.size(); at++) {
    const std::uint64_t page = (at - first_page_offset) / page_size_bytes;
    Bytes changed = stored;
    changed[at] ^= static_cast<Byte>(1u << (at % 8));
    fix_page_crc(changed, page);
    if (changed == stored) continue;  // the CRC itself
    backing->store(table_path, changed);
    const ErrorCode code = code_of(read_table(*backing, table_path));
    // The final bit is structure, which a scrub checks too.
    ASSERT_TRUE(code == ErrorCode::tampered || is_verdict(code)) << "byte " << at;
    const bool is_ciphertext = (at - first_page_offset) % page_size_bytes < 100;
    if (is_ciphertext) {
      ASSERT_EQ(code, ErrorCode::tampered) << "byte " << at;
      ASSERT_TRUE(scrub_database_file(*backing, table_path));
    }
  }
}

TEST(TableFile, a_changed_header_is_told) {
  auto backing = make_volume();
  write_table(*backing, table_path, 100);
  const Bytes stored = *backing->load(table_path);
  for (std::size_t at = 0; at < 60; at++) {
    Bytes changed = stored;
    changed[at] ^= 1;
    fix_header_crc(changed);
    backing->store(table_path, changed);
    auto read = read_table(*backing, table_path);
    ASSERT_FALSE(read) << "byte " << at;
    EXPECT_TRUE(is_verdict(read.error().code) || read.error().code == ErrorCode::unsupported)
        << "byte " << at << ": " << read.error().message;
  }
}

TEST(TableFile, a_cut_at_any_place_is_told) {
  auto backing = make_volume();
  write_table(*backing, table_path, 2 * page_plain_bytes + 100);
  const Bytes stored = *backing->load(table_path);
  for (std::size_t size = 0; size < stored.size(); size++) {
    backing->store(table_path, ByteView(stored).first(size));
    ASSERT_EQ(code_of(read_table(*backing, table_path)), ErrorCode::corrupt) << "size " << size;
    ASSERT_EQ(code_of(scrub_database_file(*backing, table_path)), ErrorCode::corrupt)
        << "size " << size;
  }
}

TEST(TableFile, growth_is_told) {
  auto backing = make_volume();
  write_table(*backing, table_path, 2 * page_plain_bytes + 100);
  const Bytes stored = *backing->load(table_path);
  for (const std::size_t more : {1u, 23u, 24u, 25u, 4000u, 4096u, 8192u}) {
    for (const bool zeros : {true, false}) {
      Bytes longer = stored;
      // Zeros, or the file's own pages once more.
      for (std::size_t i = 0; i < more; i++) {
        longer.push_back(zeros ? 0 : stored[first_page_offset + i % (stored.size() - 64)]);
      }
      backing->store(table_path, longer);
      ASSERT_EQ(code_of(read_table(*backing, table_path)), ErrorCode::corrupt) << more;
    }
  }
}

TEST(TableFile, pages_are_bound_to_their_place_and_file) {
  auto backing = make_volume();
  write_table(*backing, table_path, 4 * page_plain_bytes, 1);
  write_table(*backing, "db/000013.sst", 4 * page_plain_bytes, 2);
  const Bytes a = *backing->load(table_path);
  const Bytes b = *backing->load("db/000013.sst");
  const auto copy_page = [](const Bytes& from, std::uint64_t source, Bytes& to,
                            std::uint64_t target) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(page_offset(source)), page_size_bytes,
                to.begin() + static_cast<std::ptrdiff_t>(page_offset(target)));
  };
  for (std::uint64_t source = 0; source < 4; source++) {
    for (std::uint64_t target = 0; target < 4; target++) {
      for (const bool same_file : {true, false}) {
        if (same_file && source == target) continue;
        Bytes changed = a;
        copy_page(same_file ? a : b, source, changed, target);
        backing->store(table_path, changed);
        EXPECT_EQ(code_of(read_table(*backing, table_path)), ErrorCode::corrupt)
            << "a write that went astray";
        EXPECT_EQ(code_of(scrub_database_file(*backing, table_path)), ErrorCode::corrupt);
        fix_page_crc(changed, target);
        backing->store(table_path, changed);
        EXPECT_TRUE(is_verdict(code_of(read_table(*backing, table_path))));
      }
    }
  }
  // Whole files under another name, and in another volume.
  backing->store(table_path, b);
  EXPECT_EQ(code_of(read_table(*backing, table_path)), ErrorCode::tampered);
  backing->store(table_path, a);
  EXPECT_EQ(code_of(read_table(*backing, table_path, 9)), ErrorCode::tampered);
  backing->store(log_path, a);
  EXPECT_TRUE(is_verdict(code_of(read_content(*backing, log_path))));
}
}  // namespace
}  // namespace nacre::tests
