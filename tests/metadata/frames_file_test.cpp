// SPDX-License-Identifier: Apache-2.0
// Frames files by themselves, and the log that is one: what is written is read, and every change of
// a stored byte, frame or size is told, as rot or as tampering.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "metadata/sealed_fs/database_scrub.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/log_writer.h"
#include "tests/metadata/sealed_files.h"
#include "tests/support/temporary_directory.h"

namespace nacre::tests {
namespace {

using namespace metadata;

std::unique_ptr<FrameWriter> make_writer(std::shared_ptr<MemoryBacking> backing,
                                         std::string_view path) {
  auto seal = FileSeal::create(*make_keys(), path, padding_under_test());
  EXPECT_TRUE(seal);
  auto writer = std::make_unique<FrameWriter>(std::move(backing), std::move(*seal));
  const bool is_manifest = parse_file_name(path).file_class == FileClass::manifest;
  if (is_manifest && writer->header().format != EpochFormat::one) writer->append_link({});
  EXPECT_TRUE(writer->open());
  return writer;
}

// Writes frames of these sizes, and syncs each one. Returns the content.
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
      const bool is_small = parse_file_name(path).file_class == FileClass::other;
      for (int i = 0; i < 30; i++) {
        const std::size_t bound = seed % 2 == 0 ? 200 : is_small ? 30000 : 150000;
        const Bytes piece = random_bytes(random, random() % bound);
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

TEST(FramesFile, of_a_size_that_none_ever_has_is_refused_by_name) {
  const std::pair<std::string_view, std::uint64_t> giants[] = {{"db/CURRENT", (1u << 20) + 1},
                                                               {"db/IDENTITY", 1ull << 31},
                                                               {"db/MANIFEST-000003", 65u << 20},
                                                               {"db/LOG", 65u << 20},
                                                               {log_path, (2ull << 30) + 1}};
  for (const auto& [path, size] : giants) {
    TemporaryDirectory folder;
    ASSERT_EQ(::mkdir(folder.path("db").c_str(), 0700), 0);
    std::ofstream(folder.path(std::string(path))) << "x";
    std::filesystem::resize_file(folder.path(std::string(path)), size);
    const auto backing = open_posix_directory(folder.path()).value();
    const auto scrubbed = scrub_database_file(*backing, path);
    ASSERT_FALSE(scrubbed) << path;
    EXPECT_EQ(scrubbed.error().code, ErrorCode::corrupt);
    EXPECT_NE(scrubbed.error().message.find(std::string(path)), std::string::npos);
    EXPECT_EQ(read_frames(*backing, path, *make_keys()).error().code, ErrorCode::corrupt) << path;
  }
}

// Each header claims the largest frame, so checking all of them would cost the square of the size.
TEST(FramesFile, full_of_headers_is_given_up_within_a_budget) {
  auto backing = make_volume();
  write_frames(backing, log_path, {100});
  Bytes file = read_file(*backing, log_path).value();
  file.resize(frames_of(file).back().offset + frames_of(file).back().size);
  const Bytes first(file.begin() + file_header_size_bytes,
                    file.begin() + file_header_size_bytes + frame_header_size_bytes);
  for (int i = 0; i < 40000; ++i) {
    Bytes header = first;
    store_le(&header[4], static_cast<std::uint32_t>(frame_plain_bytes_max));
    file.insert(file.end(), header.begin(), header.end());
  }
  auto fresh = backing->open(log_path, OpenMode::create_or_empty).value();
  ASSERT_TRUE(fresh->write(0, ByteView(file)));
  const auto scrubbed = scrub_database_file(*backing, log_path);
  ASSERT_FALSE(scrubbed);
  EXPECT_EQ(scrubbed.error().code, ErrorCode::corrupt);
  EXPECT_NE(scrubbed.error().message.find("looks like frames"), std::string::npos)
      << scrubbed.error().message;
  EXPECT_EQ(read_frames(*backing, log_path, *make_keys()).error().code, ErrorCode::corrupt);
}

// Frames lie across the edges of the window through which a file is read.
TEST(FramesFile, larger_than_the_window_is_read_and_vouched_for_as_a_whole) {
  auto backing = make_volume();
  const Bytes content = write_frames(backing, log_path, std::vector<std::size_t>(60, 50'001));
  const auto read = read_frames(*backing, log_path, *make_keys());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->plain, content);
  const Bytes stored = read_file(*backing, log_path).value();
  EXPECT_EQ(read->unvouched,
            Bytes(stored.begin() + static_cast<std::ptrdiff_t>(read->walk.vouched_end),
                  stored.begin() + static_cast<std::ptrdiff_t>(read->walk.end)));
  EXPECT_GT(read->walk.vouched_end, 0u);
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
  const std::vector<std::size_t> sizes = {100, 1, 300, 70, 50};
  const Bytes content = write_frames(backing, log_path, sizes);
  const Bytes stored = *backing->load(log_path);
  const auto frames = frames_of(stored);
  ASSERT_EQ(frames.size(), sizes.size());
  for (std::size_t size = 0; size < stored.size(); size++) {
    backing->store(log_path, ByteView(stored).first(size));
    std::size_t whole = 0;
    for (std::size_t i = 0; i < frames.size(); i++) {
      if (frames[i].offset + frames[i].size <= size) whole += sizes[i];
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
      // A header that no writer makes does not count as a frame; the last frame may then pass for a
      // torn tail. An attacker can have that anyway, by cutting it off.
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
  LogWriter log(backing, *FileSeal::create(*make_keys(), log_path, padding_under_test()), nullptr,
                {}, fail_stop);
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
  auto first = std::make_shared<LogWriter>(
      backing, *FileSeal::create(*make_keys(), log_path, padding_under_test()), nullptr,
      LogWitness{}, fail_stop);
  ASSERT_TRUE(first->ensure_exists());
  EXPECT_TRUE(first->append(Bytes(100, Byte{1})));
  EXPECT_TRUE(first->flush());
  LogWitness witness;
  witness.previous_log = 7;
  LogWriter second(backing, *FileSeal::create(*make_keys(), "db/000008.log", padding_under_test()),
                   first, witness, fail_stop);
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
