// SPDX-License-Identifier: Apache-2.0
// A whole database whose files are changed, cut, swapped, lost or put back: opening and reading it
// gives a verdict or exactly the rows it had, never others.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "metadata/sealed_fs/database_scrub.h"
#include "metadata/sealed_fs/file_header.h"
#include "metadata/sealed_fs/frame_layout.h"
#include "metadata/sealed_fs/page_layout.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using namespace metadata;

using Content = std::map<std::string, std::string>;

// All rows, or the error of opening or reading the database.
Result<Content> content_of(std::shared_ptr<MemoryBacking> backing, bool read_only = true) {
  auto options = small_options();
  options.read_only = read_only;
  NACRE_ASSIGN(auto database, Database::open(std::move(backing), make_keys(), options));
  Content content;
  for (std::size_t table = 0; table < table_count; table++) {
    NACRE_TRY(database->scan(static_cast<Table>(table), "", "",
                             [&](std::string_view key, std::string_view value) {
                               content[std::to_string(table) + std::string(key)] = value;
                               return true;
                             }));
  }
  return content;
}

void put_rows(Database& database, int from, int to) {
  for (int i = from; i < to; i++) {
    const std::string key = "row" + std::to_string(1000 + i);
    database.put(Table::inodes, key, std::string(200, static_cast<char>('a' + i % 26)));
    database.put(Table::dentries, key, "entry" + std::to_string(i));
  }
}

// Rows in tables and in the live log: made, closed, opened, written to, closed, opened, written to,
// killed.
struct Volume {
  std::shared_ptr<MemoryBacking> early;  // after the first close
  std::shared_ptr<MemoryBacking> backing;
  Content before_last;  // without the last group, which nothing vouches for
  Content content;
};

const Volume& volume() {
  static const Volume made = [] {
    Volume volume;
    auto backing = MemoryBacking::create();
    auto database = create_database(backing);
    put_rows(*database, 0, 100);
    EXPECT_TRUE(commit(*database));
    EXPECT_TRUE(database->close());
    database = nullptr;
    volume.early = backing->process_kill();
    database = open_database(backing, small_options());
    put_rows(*database, 50, 90);
    EXPECT_TRUE(commit(*database));
    EXPECT_TRUE(database->close());
    database = open_database(backing, small_options());
    for (int group = 0; group < 4; group++) {
      put_rows(*database, 90 + group * 10, 110 + group * 10);
      EXPECT_TRUE(commit(*database));
      if (group == 2) volume.before_last = content_of(backing->process_kill()).value();
    }
    volume.backing = backing->process_kill();
    backing->stop();
    volume.content = content_of(volume.backing->process_kill()).value();
    EXPECT_NE(volume.content, volume.before_last);
    return volume;
  }();
  return made;
}

bool is_live_log(std::string_view path) {
  return path == files_ending(*volume().backing, ".log").back();
}

// Expects a verdict about the data, or exactly the same rows. Only the last group of a live log may
// be missing.
void expect_verdict_or_same(const std::shared_ptr<MemoryBacking>& changed, std::string_view path) {
  const auto content = content_of(changed);
  if (content) {
    if (is_live_log(path) && *content == volume().before_last) return;
    ASSERT_TRUE(*content == volume().content) << "other rows came back";
    return;
  }
  const ErrorCode code = content.error().code;
  EXPECT_TRUE(code == ErrorCode::corrupt || code == ErrorCode::tampered ||
              code == ErrorCode::missing || code == ErrorCode::rolled_back ||
              code == ErrorCode::unsupported)
      << to_string(code) << ": " << content.error().message;
}

bool matters(std::string_view path) {
  const FileClass file_class = parse_file_name(path).file_class;
  return file_class == FileClass::table || file_class == FileClass::log ||
         file_class == FileClass::manifest || path.ends_with("/CURRENT");
}

TEST(DatabaseDamage, the_example_has_every_kind_of_file) {
  const auto& backing = *volume().backing;
  EXPECT_GE(files_ending(backing, ".sst").size(), 2u);
  EXPECT_GE(files_ending(backing, ".log").size(), 1u);
  EXPECT_EQ(files_beginning(backing, "MANIFEST-").size(), 1u);
  EXPECT_EQ(files_beginning(backing, "CURRENT").size(), 1u);
  for (const auto& path : backing.files()) {
    auto scrubbed = scrub_database_file(*volume().backing->process_kill(), path);
    EXPECT_TRUE(scrubbed) << scrubbed.error().message;
  }
}

TEST(DatabaseDamage, a_flipped_byte_gives_a_verdict_or_changes_nothing) {
  std::mt19937_64 random(5);
  for (const auto& path : volume().backing->files()) {
    const Bytes stored = *volume().backing->load(path);
    // Tries all bytes of small files, and a part of the bytes of others.
    const std::size_t step = std::max<std::size_t>(1, stored.size() / 300);
    for (std::size_t at = 0; at < stored.size(); at += 1 + random() % (2 * step)) {
      SCOPED_TRACE(path + " byte " + std::to_string(at));
      auto changed = volume().backing->process_kill();
      Bytes bytes = stored;
      bytes[at] ^= static_cast<Byte>(1u << random() % 8);
      changed->store(path, bytes);
      expect_verdict_or_same(changed, path);
      if (parse_file_name(path).file_class == FileClass::table || path.ends_with("/CURRENT")) {
        auto content = content_of(changed);
        EXPECT_FALSE(content) << "not noticed";
        EXPECT_FALSE(scrub_database_file(*changed, path));
      }
      if (HasFailure()) return;
    }
  }
}

TEST(DatabaseDamage, of_many_rows_only_those_on_a_bad_page_fail) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  std::mt19937_64 random(7);
  std::vector<std::string> keys;
  for (int i = 0; i < 6000; i++) {
    keys.push_back("row" + std::to_string(1000 + i));
    std::string value(200, '\0');
    for (char& byte : value)
      byte = static_cast<char>(random());
    database->put(Table::inodes, keys.back(), value);
  }
  ASSERT_TRUE(commit(*database));
  ASSERT_TRUE(database->close());
  database = nullptr;
  for (const auto& path : files_ending(*backing, ".sst")) {
    Bytes bytes = *backing->load(path);
    if (bytes.size() < 1'000'000) continue;  // of another table; the end is read when it is opened
    bytes[page_offset(20) + 50] ^= 1;
    backing->store(path, bytes);
  }
  database = open_database(backing, small_options());
  ASSERT_NE(database, nullptr);
  const auto found = database->get_many(Table::inodes, keys);
  ASSERT_EQ(found.size(), keys.size());
  std::size_t bad_count = 0;
  for (std::size_t i = 0; i < keys.size(); i++) {
    const auto alone = database->get(Table::inodes, keys[i]);
    ASSERT_EQ(found[i].has_value(), alone.has_value()) << keys[i];
    if (alone) {
      ASSERT_EQ(*found[i], *alone) << keys[i];
    } else {
      EXPECT_EQ(found[i].error().code, ErrorCode::corrupt);
      bad_count++;
    }
  }
  EXPECT_GT(bad_count, 0u);
  EXPECT_LT(bad_count, 200u);
}

TEST(DatabaseDamage, a_file_cut_at_a_boundary_gives_a_verdict) {
  for (const auto& path : volume().backing->files()) {
    const Bytes stored = *volume().backing->load(path);
    std::vector<std::size_t> sizes = {0, 1, 63, 64};
    if (parse_file_name(path).file_class == FileClass::table) {
      for (std::uint64_t page = 1; page_offset(page) < stored.size(); page++) {
        sizes.push_back(page_offset(page));
      }
    } else {
      for (std::size_t at = find_frame_magic(stored, 64); at < stored.size();
           at = find_frame_magic(stored, at + 1)) {
        sizes.push_back(at);
      }
    }
    for (const std::size_t size : sizes) {
      SCOPED_TRACE(path + " cut to " + std::to_string(size));
      auto changed = volume().backing->process_kill();
      changed->store(path, ByteView(stored).first(std::min(size, stored.size() - 1)));
      auto content = content_of(changed);
      if (is_live_log(path)) {
        // The tail of a live log has no witness: a prefix of the groups is left, or nothing.
        EXPECT_TRUE(content || content.error().code == ErrorCode::missing);
      } else {
        // The end of a manifest may say nothing that the logs do not hold as well.
        expect_verdict_or_same(changed, path);
        const FileClass file_class = parse_file_name(path).file_class;
        if (matters(path) && file_class != FileClass::manifest) {
          EXPECT_FALSE(content) << "not noticed";
        }
      }
      if (HasFailure()) return;
    }
  }
}

TEST(DatabaseDamage, a_manifest_cut_below_what_a_log_knows_is_corrupt) {
  // Closed: all rows are in tables, which only the manifest knows.
  const auto path = files_beginning(*volume().early, "MANIFEST-").front();
  const Bytes stored = *volume().early->load(path);
  std::size_t last = 64;
  for (std::size_t at = find_frame_magic(stored, 64); at < stored.size();
       at = find_frame_magic(stored, at + 1)) {
    last = at;
  }
  auto changed = volume().early->process_kill();
  changed->store(path, ByteView(stored).first(last));
  for (const bool read_only : {true, false}) {
    auto content = content_of(changed, read_only);
    ASSERT_FALSE(content);
    EXPECT_EQ(content.error().code, ErrorCode::corrupt) << content.error().message;
  }
}

TEST(DatabaseDamage, a_lost_file_is_missing) {
  for (const auto& path : volume().backing->files()) {
    SCOPED_TRACE(path);
    for (const bool read_only : {true, false}) {
      auto changed = volume().backing->process_kill();
      changed->erase(path);
      auto content = content_of(changed, read_only);
      if (matters(path)) {
        ASSERT_FALSE(content);
        EXPECT_EQ(content.error().code, ErrorCode::missing) << content.error().message;
      } else {
        ASSERT_TRUE(content) << content.error().message;
        EXPECT_TRUE(*content == volume().content);
      }
    }
  }
}

TEST(DatabaseDamage, files_put_in_each_others_place_give_a_verdict) {
  const auto paths = volume().backing->files();
  for (const auto& target : paths) {
    for (const auto& source : paths) {
      if (source == target || !matters(target)) continue;
      SCOPED_TRACE(source + " in the place of " + target);
      auto changed = volume().backing->process_kill();
      changed->store(target, *volume().backing->load(source));
      auto content = content_of(changed);
      ASSERT_FALSE(content) << "not noticed";
      expect_verdict_or_same(changed, target);
    }
  }
}

TEST(DatabaseDamage, an_older_state_of_a_file_put_back_gives_a_verdict_or_changes_nothing) {
  for (const auto& path : volume().early->files()) {
    SCOPED_TRACE(path);
    auto changed = volume().backing->process_kill();
    changed->store(path, *volume().early->load(path));
    for (const bool read_only : {true, false}) {
      auto content = content_of(changed->process_kill(), read_only);
      if (path.ends_with("/CURRENT")) {
        EXPECT_FALSE(content);
      }
      expect_verdict_or_same(changed, path);
    }
  }
  // CURRENT and its manifest are put back together. They are older than what the log says.
  auto changed = volume().backing->process_kill();
  for (const auto& path : volume().early->files()) {
    if (path.ends_with("/CURRENT") || path.find("/MANIFEST") != std::string::npos) {
      changed->store(path, *volume().early->load(path));
    }
  }
  auto content = content_of(changed);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::rolled_back) << content.error().message;
}

TEST(DatabaseDamage, a_log_put_back_is_not_replayed) {
  // Logs of an early moment under the names of later ones, next to the live log.
  auto changed = volume().backing->process_kill();
  const auto logs = files_ending(*volume().early, ".log");
  ASSERT_FALSE(logs.empty());
  changed->store(logs.back(), *volume().early->load(logs.back()));
  auto content = content_of(changed);
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_TRUE(*content == volume().content);
}

TEST(DatabaseDamage, a_database_of_another_volume_is_tampering) {
  auto opened = Database::open(volume().backing->process_kill(), make_keys(9), small_options());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::tampered) << opened.error().message;
}

TEST(DatabaseDamage, errors_name_the_file_and_keep_their_verdict) {
  const auto table = files_ending(*volume().backing, ".sst").front();
  auto changed = volume().backing->process_kill();
  Bytes bytes = *volume().backing->load(table);
  bytes[100] ^= 1;
  changed->store(table, bytes);
  auto content = content_of(changed);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::corrupt);
  EXPECT_NE(content.error().message.find(table), std::string::npos) << content.error().message;
  EXPECT_EQ(content.error().message.find('{'), std::string::npos) << content.error().message;
}

}  // namespace
}  // namespace nacre::tests
