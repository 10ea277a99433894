// SPDX-License-Identifier: Apache-2.0
// Table files and frames files by themselves: what is written is read, and every change of a stored
// byte, page, frame or size is told, as rot or as tampering.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "gpu_engine/checksum/crc32.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/log_writer.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/page_layout.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using namespace metadata;

constexpr std::string_view table_path = "db/000012.sst";
constexpr std::string_view log_path = "db/000007.log";

Bytes random_bytes(std::mt19937_64& random, std::size_t size) {
  Bytes bytes(size);
  for (Byte& byte : bytes)
    byte = static_cast<Byte>(random());
  return bytes;
}

std::shared_ptr<MemoryBacking> make_volume() {
  auto backing = MemoryBacking::create();
  EXPECT_TRUE(backing->make_directory("db"));
  EXPECT_TRUE(backing->sync_directory(""));
  return backing;
}

Bytes write_table(MemoryBacking& backing, std::string_view path, std::size_t size,
                  std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  const Bytes content = random_bytes(random, size);
  auto writer = PageWriter::create(backing, path, *make_keys());
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

std::unique_ptr<FrameWriter> make_writer(std::shared_ptr<MemoryBacking> backing,
                                         std::string_view path) {
  auto seal = FileSeal::create(*make_keys(), path);
  EXPECT_TRUE(seal);
  auto writer = std::make_unique<FrameWriter>(std::move(backing), std::move(*seal));
  EXPECT_TRUE(writer->open());
  return writer;
}

// Frames of these sizes, each synced on its own. Returns the content.
Bytes write_frames(std::shared_ptr<MemoryBacking> backing, std::string_view path,
                   const std::vector<std::size_t>& sizes, bool close = true,
                   std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Bytes content;
  auto writer = make_writer(std::move(backing), path);
  for (const std::size_t size : sizes) {
    const Bytes piece = random_bytes(random, size);
    content.insert(content.end(), piece.begin(), piece.end());
    EXPECT_TRUE(writer->append(piece));
    EXPECT_TRUE(writer->sync());
  }
  if (close) {
    EXPECT_TRUE(writer->close());
  }
  return content;
}

Result<Bytes> read_content(MemoryBacking& backing, std::string_view path, Byte id = 7) {
  NACRE_ASSIGN(FramesContent content, read_frames(backing, path, *make_keys(id)));
  return std::move(content.plain);
}

template <typename T>
ErrorCode code_of(const Result<T>& result) {
  EXPECT_FALSE(result);
  return result ? ErrorCode::cancelled : result.error().code;
}

bool is_verdict(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::tampered;
}

// What somebody does who knows the format but no key.
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

struct FramePlace {
  std::size_t offset, size;
};
std::vector<FramePlace> frames_of(const Bytes& file) {
  std::vector<FramePlace> places;
  for (std::size_t at = file_header_size_bytes; at + frame_overhead_bytes <= file.size();) {
    if (find_frame_magic(file, at) != at) break;
    const std::size_t size = frame_overhead_bytes + load_le<std::uint32_t>(&file[at + 4]);
    places.push_back({at, size});
    at += size;
  }
  return places;
}

void fix_frame_crc(Bytes& file, const FramePlace& frame) {
  FileSalt salt;
  std::copy_n(file.begin() + 32, salt.size(), salt.begin());
  const ByteView whole = ByteView(file).subspan(frame.offset, frame.size);
  store_le(&file[frame.offset + frame_authenticated_bytes], frame_crc(salt, whole));
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
      auto writer = PageWriter::create(*backing, table_path, *make_keys());
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
      ASSERT_EQ(backing->file_size(table_path), stored_size_of(size));
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
  auto writer = PageWriter::create(*backing, table_path, *make_keys());
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

TEST(FramesFile, gives_back_what_was_appended_in_any_pieces) {
  for (const std::string_view path :
       {"db/000007.log", "db/MANIFEST-000003", "db/CURRENT", "db/OPTIONS-000004", "db/LOG"}) {
    for (std::uint64_t seed = 1; seed <= 8; seed++) {
      SCOPED_TRACE(std::string(path) + " seed " + std::to_string(seed));
      std::mt19937_64 random(seed);
      auto backing = make_volume();
      auto writer = make_writer(backing, path);
      ASSERT_TRUE(backing->sync_directory("db"));
      Bytes content;
      for (int i = 0; i < 30; i++) {
        const Bytes piece = random_bytes(random, random() % (seed % 2 == 0 ? 200 : 150000));
        content.insert(content.end(), piece.begin(), piece.end());
        ASSERT_TRUE(writer->append(piece));
        if (random() % 3 == 0) {
          ASSERT_TRUE(writer->flush());
        }
        if (random() % 3 == 0) {
          ASSERT_TRUE(writer->sync());
          auto so_far = read_content(*backing->power_loss(0), path);
          ASSERT_TRUE(so_far) << so_far.error().message;
          ASSERT_EQ(*so_far, content);
        }
      }
      ASSERT_TRUE(writer->close());
      auto read = read_content(*backing, path);
      ASSERT_TRUE(read) << read.error().message;
      ASSERT_EQ(*read, content);
      ASSERT_TRUE(scrub_database_file(*backing, path));
    }
  }
}

TEST(FramesFile, a_synced_log_does_not_change_its_size_at_each_sync) {
  auto backing = make_volume();
  auto writer = make_writer(backing, log_path);
  std::uint64_t growths = 0;
  std::uint64_t size = *backing->file_size(log_path);
  for (int i = 0; i < 1000; i++) {
    ASSERT_TRUE(writer->append(Bytes(2000, Byte{1})));
    ASSERT_TRUE(writer->sync());
    const std::uint64_t now = *backing->file_size(log_path);
    growths += now == size ? 0 : 1;
    size = now;
  }
  EXPECT_LE(growths, 4u);
  EXPECT_GT(size, writer->stored_bytes());
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(*backing->file_size(log_path), writer->stored_bytes());
}

TEST(FramesFile, damage_below_a_later_frame_is_told_and_a_torn_last_frame_is_not) {
  auto backing = make_volume();
  for (const bool close : {true, false}) {  // without and with zeros behind the last frame
    const Bytes content = write_frames(backing, log_path, {100, 1, 300, 70, 50}, close);
    Bytes stored = *backing->load(log_path);
    const auto frames = frames_of(stored);
    ASSERT_EQ(frames.size(), 5u);
    for (std::size_t at = 0; at < frames.back().offset + frames.back().size; at++) {
      Bytes changed = stored;
      changed[at] ^= static_cast<Byte>(1u << (at % 8));
      backing->store(log_path, changed);
      auto read = read_content(*backing, log_path);
      auto scrubbed = scrub_database_file(*backing, log_path);
      if (at < frames.back().offset) {
        ASSERT_EQ(code_of(read), ErrorCode::corrupt) << "byte " << at;
        ASSERT_EQ(code_of(scrubbed), ErrorCode::corrupt) << "byte " << at;
      } else {
        ASSERT_TRUE(read) << "byte " << at << ": " << read.error().message;
        ASSERT_EQ(*read, Bytes(content.begin(), content.end() - 50)) << "byte " << at;
        ASSERT_TRUE(scrubbed);
      }
    }
    // A sector that reads as zeros is damage as well.
    Bytes zeroed = stored;
    std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(frames[1].offset), 200, Byte{0});
    backing->store(log_path, zeroed);
    EXPECT_EQ(code_of(read_content(*backing, log_path)), ErrorCode::corrupt);
  }
}

TEST(FramesFile, unsynced_frames_may_be_torn_anywhere) {
  auto backing = make_volume();
  auto writer = make_writer(backing, log_path);
  ASSERT_TRUE(writer->append(Bytes(100, Byte{1})));
  ASSERT_TRUE(writer->sync());
  for (Byte i = 2; i < 6; i++) {
    ASSERT_TRUE(writer->append(Bytes(100, i)));
    ASSERT_TRUE(writer->flush());
  }
  const Bytes stored = *backing->load(log_path);
  const auto frames = frames_of(stored);
  ASSERT_EQ(frames.size(), 5u);
  for (std::size_t bad = 1; bad < 5; bad++) {  // later ones may be whole: they vouch for nothing
    for (std::size_t at = frames[bad].offset; at < frames[bad].offset + frames[bad].size; at++) {
      Bytes changed = stored;
      changed[at] ^= 0x10;
      backing->store(log_path, changed);
      auto read = read_content(*backing, log_path);
      ASSERT_TRUE(read) << read.error().message;
      ASSERT_EQ(read->size(), bad * 100);
      ASSERT_TRUE(scrub_database_file(*backing, log_path));
    }
  }
}

TEST(FramesFile, a_log_cut_anywhere_gives_its_whole_frames) {
  auto backing = make_volume();
  const Bytes content = write_frames(backing, log_path, {100, 1, 300, 70, 50});
  const Bytes stored = *backing->load(log_path);
  const auto frames = frames_of(stored);
  for (std::size_t size = 0; size < stored.size(); size++) {
    backing->store(log_path, ByteView(stored).first(size));
    std::size_t whole = 0;
    for (const auto& frame : frames) {
      if (frame.offset + frame.size <= size) whole += frame.size - frame_overhead_bytes;
    }
    auto read = read_content(*backing, log_path);
    ASSERT_TRUE(read) << "size " << size << ": " << read.error().message;
    ASSERT_EQ(*read, Bytes(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(whole)));
    ASSERT_TRUE(scrub_database_file(*backing, log_path));
  }
}

TEST(FramesFile, a_small_file_is_whole_or_damaged) {
  for (const std::string_view path : {"db/CURRENT", "db/000009.dbtmp", "db/IDENTITY"}) {
    auto backing = make_volume();
    write_frames(backing, path, {16});
    const Bytes stored = *backing->load(path);
    for (std::size_t size = 0; size < stored.size(); size++) {
      backing->store(path, ByteView(stored).first(size));
      ASSERT_EQ(code_of(read_content(*backing, path)), ErrorCode::corrupt) << size;
      ASSERT_EQ(code_of(scrub_database_file(*backing, path)), ErrorCode::corrupt) << size;
    }
    for (std::size_t at = 0; at < stored.size(); at++) {
      Bytes changed = stored;
      changed[at] ^= static_cast<Byte>(1u << (at % 8));
      backing->store(path, changed);
      ASSERT_EQ(code_of(read_content(*backing, path)), ErrorCode::corrupt) << at;
      ASSERT_EQ(code_of(scrub_database_file(*backing, path)), ErrorCode::corrupt) << at;
    }
  }
}

TEST(FramesFile, an_empty_small_file_is_told_from_a_cut_one) {
  auto backing = make_volume();
  write_frames(backing, "db/CURRENT", {});
  auto read = read_content(*backing, "db/CURRENT");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->empty());
}

TEST(FramesFile, a_change_with_a_matching_checksum_is_tampering) {
  auto backing = make_volume();
  write_frames(backing, log_path, {100, 1, 300, 70, 50});
  const Bytes stored = *backing->load(log_path);
  for (const auto& frame : frames_of(stored)) {
    for (std::size_t at = frame.offset + 8; at < frame.offset + frame.size; at++) {
      Bytes changed = stored;
      changed[at] ^= static_cast<Byte>(1u << (at % 8));
      fix_frame_crc(changed, frame);
      if (changed == stored) continue;  // the CRC itself
      backing->store(log_path, changed);
      auto read = read_content(*backing, log_path);
      // A header that no writer makes does not count as a frame; the last frame may then be a torn
      // tail, which is what somebody who cuts it can have anyway.
      if (read) {
        ASSERT_EQ(frame.offset, frames_of(stored).back().offset) << at;
        ASSERT_EQ(read->size(), 471u) << at;
      } else {
        ASSERT_TRUE(is_verdict(read.error().code));
      }
      const std::size_t in_frame = at - frame.offset;
      if (in_frame >= frame_header_size_bytes) {
        ASSERT_EQ(code_of(read), ErrorCode::tampered) << at;
      }
    }
  }
}

TEST(FramesFile, frames_are_bound_to_their_place_and_file) {
  auto backing = make_volume();
  write_frames(backing, log_path, {64, 64, 64, 64}, true, 1);
  write_frames(backing, "db/000008.log", {64, 64, 64, 64}, true, 2);
  const Bytes a = *backing->load(log_path);
  const Bytes b = *backing->load("db/000008.log");
  const auto frames = frames_of(a);
  const auto copy_frame = [&](const Bytes& from, std::size_t source, Bytes& to,
                              std::size_t target) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(frames[source].offset),
                frames[source].size,
                to.begin() + static_cast<std::ptrdiff_t>(frames[target].offset));
  };
  for (std::size_t source = 0; source < 4; source++) {
    for (std::size_t target = 0; target < 4; target++) {
      if (source != target) {
        Bytes changed = a;
        copy_frame(a, source, changed, target);
        backing->store(log_path, changed);
        EXPECT_EQ(code_of(read_content(*backing, log_path)), ErrorCode::tampered);
        EXPECT_EQ(code_of(scrub_database_file(*backing, log_path)), ErrorCode::corrupt);
      }
      Bytes changed = a;
      copy_frame(b, source, changed, target);
      fix_frame_crc(changed, frames[target]);
      backing->store(log_path, changed);
      EXPECT_EQ(code_of(read_content(*backing, log_path)), ErrorCode::tampered);
    }
  }
  // A frame taken out, the rest moved up.
  Bytes shorter = a;
  shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(frames[1].offset),
                shorter.begin() + static_cast<std::ptrdiff_t>(frames[2].offset));
  backing->store(log_path, shorter);
  EXPECT_EQ(code_of(read_content(*backing, log_path)), ErrorCode::tampered);
  // Whole files under another name, and in another volume.
  backing->store(log_path, b);
  EXPECT_EQ(code_of(read_content(*backing, log_path)), ErrorCode::tampered);
  backing->store(log_path, a);
  EXPECT_EQ(code_of(read_content(*backing, log_path, 9)), ErrorCode::tampered);
}

TEST(FramesFile, after_no_space_the_same_frames_are_written_again) {
  auto backing = make_volume();
  auto writer = make_writer(backing, log_path);
  ASSERT_TRUE(writer->append(Bytes(100, Byte{1})));
  ASSERT_TRUE(writer->sync());
  backing->inject({.operations = change_write, .code = ErrorCode::no_space, .partial = true});
  ASSERT_TRUE(writer->append(Bytes(100, Byte{2})));
  EXPECT_EQ(code_of(writer->flush()), ErrorCode::no_space);
  EXPECT_EQ(code_of(writer->sync()), ErrorCode::no_space);
  EXPECT_FALSE(writer->is_synced());
  backing->clear_failures();
  ASSERT_TRUE(writer->append(Bytes(100, Byte{3})));
  ASSERT_TRUE(writer->sync());
  EXPECT_TRUE(writer->is_synced());
  auto read = read_content(*backing, log_path);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 300u);
  EXPECT_EQ((*read)[150], 2);
  EXPECT_EQ((*read)[250], 3);
}

TEST(FramesFile, a_sync_that_failed_is_not_tried_again) {
  auto backing = make_volume();
  auto writer = make_writer(backing, log_path);
  ASSERT_TRUE(writer->append(Bytes(100, Byte{1})));
  backing->inject({.operations = change_sync, .count = 1, .code = ErrorCode::io});
  EXPECT_EQ(code_of(writer->sync()), ErrorCode::io);
  EXPECT_EQ(code_of(writer->sync()), ErrorCode::io);
}

TEST(LogWriter, keeps_errors_to_itself_until_it_is_asked) {
  auto backing = make_volume();
  auto fail_stop = std::make_shared<FailStop>();
  LogWriter log(backing, *FileSeal::create(*make_keys(), log_path), nullptr, {}, fail_stop);
  backing->inject({.operations = change_create, .code = ErrorCode::no_space});
  EXPECT_EQ(code_of(log.ensure_exists()), ErrorCode::no_space);
  EXPECT_TRUE(log.append(Bytes(100, Byte{1})));
  EXPECT_TRUE(log.sync());
  EXPECT_EQ(code_of(log.settle(true)), ErrorCode::no_space);
  EXPECT_TRUE(fail_stop->check());
  backing->clear_failures();
  EXPECT_TRUE(log.settle(true));
  auto read = read_content(*backing->power_loss(0), log_path);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, Bytes(100, Byte{1}));

  backing->inject({.operations = change_sync, .count = 1, .code = ErrorCode::io});
  EXPECT_TRUE(log.append(Bytes(100, Byte{2})));
  EXPECT_TRUE(log.sync());
  EXPECT_EQ(code_of(log.settle(true)), ErrorCode::io);
  EXPECT_EQ(code_of(fail_stop->check()), ErrorCode::io);
}

TEST(LogWriter, is_made_only_when_its_predecessor_is_durable) {
  auto backing = make_volume();
  auto fail_stop = std::make_shared<FailStop>();
  auto first = std::make_shared<LogWriter>(backing, *FileSeal::create(*make_keys(), log_path),
                                           nullptr, LogWitness{}, fail_stop);
  ASSERT_TRUE(first->ensure_exists());
  EXPECT_TRUE(first->append(Bytes(100, Byte{1})));
  EXPECT_TRUE(first->flush());
  LogWitness witness;
  witness.previous_log = 7;
  LogWriter second(backing, *FileSeal::create(*make_keys(), "db/000008.log"), first, witness,
                   fail_stop);
  ASSERT_TRUE(second.ensure_exists());
  auto after = backing->power_loss(0);
  EXPECT_EQ(read_content(*after, log_path).value(), Bytes(100, Byte{1}));
  auto content = read_frames(*after, "db/000008.log", *make_keys());
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_TRUE(content->plain.empty());
  ASSERT_TRUE(content->walk.witness);
  EXPECT_EQ(content->walk.witness->previous_log, 7u);
  EXPECT_EQ(content->walk.witness->previous_frames, 2u) << "its own witness and one frame";
}

}  // namespace
}  // namespace nacre::tests
