// SPDX-License-Identifier: Apache-2.0
// The fault device that crash tests stand on: what it keeps, what it may lose, how it fails.
#include "tests/support/memory_backing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <thread>

namespace nacre::tests {
namespace {

using metadata::BackingFile;
using metadata::OpenMode;
using Files = std::map<std::string, std::string>;

std::unique_ptr<BackingFile> open(MemoryBacking& backing, std::string_view path,
                                  OpenMode mode = OpenMode::create_or_empty) {
  auto file = backing.open(path, mode);
  EXPECT_TRUE(file) << path << ": " << file.error().message;
  return file ? std::move(*file) : nullptr;
}

// A file that is durable, and its name too.
std::unique_ptr<BackingFile> make_durable(MemoryBacking& backing, std::string_view path,
                                          std::string_view content) {
  auto file = open(backing, path);
  EXPECT_TRUE(file->write(0, as_bytes(content)));
  EXPECT_TRUE(file->sync());
  const auto slash = path.find('/');
  EXPECT_TRUE(backing.sync_directory(slash == path.npos ? "" : path.substr(0, slash)));
  return file;
}

std::string text_of(const MemoryBacking& backing, std::string_view path) {
  const auto content = backing.load(path);
  return content ? std::string(as_text(*content)) : "(none)";
}

// The different outcomes of losing power now, over many seeds.
std::set<std::string> outcomes(const MemoryBacking& backing, std::string_view path) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    found.insert(text_of(*backing.power_loss(seed), path));
  }
  return found;
}

TEST(MemoryBacking, synced_data_under_a_synced_name_survives_every_power_loss) {
  auto backing = MemoryBacking::create();
  make_durable(*backing, "a", "kept");
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{"kept"}));
}

TEST(MemoryBacking, a_synced_file_whose_folder_is_not_synced_may_be_gone) {
  auto backing = MemoryBacking::create();
  auto file = open(*backing, "a");
  ASSERT_TRUE(file->write(0, as_bytes("kept")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{"kept", "(none)"}));
}

TEST(MemoryBacking, a_folder_not_synced_in_its_parent_may_be_gone_with_all_in_it) {
  auto backing = MemoryBacking::create();
  ASSERT_TRUE(backing->make_directory("db"));
  make_durable(*backing, "db/a", "kept");
  EXPECT_EQ(outcomes(*backing, "db/a"), (std::set<std::string>{"kept", "(none)"}));
  ASSERT_TRUE(backing->sync_directory(""));
  EXPECT_EQ(outcomes(*backing, "db/a"), (std::set<std::string>{"kept"}));
}

TEST(MemoryBacking, unsynced_writes_are_kept_or_lost_one_by_one) {
  auto backing = MemoryBacking::create();
  auto file = make_durable(*backing, "a", "....");
  ASSERT_TRUE(file->write(0, as_bytes("1")));
  ASSERT_TRUE(file->write(2, as_bytes("2")));
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{"....", "1...", "..2.", "1.2."}));
  EXPECT_EQ(text_of(*backing->power_loss(0), "a"), "....");
  EXPECT_EQ(text_of(*backing->power_loss(1), "a"), "1.2.");
}

TEST(MemoryBacking, a_write_beyond_a_lost_one_leaves_zeros_between) {
  auto backing = MemoryBacking::create();
  auto file = make_durable(*backing, "a", "");
  ASSERT_TRUE(file->write(0, as_bytes("1")));
  ASSERT_TRUE(file->write(1, as_bytes("2")));
  EXPECT_TRUE(outcomes(*backing, "a")
                  .contains(std::string("\0"
                                        "2",
                                        2)));
}

TEST(MemoryBacking, writes_tear_at_sectors_only) {
  auto backing = MemoryBacking::create();
  const std::string old(4 * 512, 'o');
  auto file = make_durable(*backing, "a", old);
  ASSERT_TRUE(file->write(100, as_bytes(std::string(3 * 512, 'n'))));
  bool torn = false;
  for (const std::string& found : outcomes(*backing, "a")) {
    ASSERT_EQ(found.size(), old.size());
    for (std::size_t sector = 0; sector < 4; ++sector) {
      const std::size_t begin = std::max<std::size_t>(100, sector * 512);
      const std::size_t end = std::min<std::size_t>(100 + 3 * 512, (sector + 1) * 512);
      const std::string part = found.substr(begin, end - begin);
      EXPECT_TRUE(part == std::string(part.size(), 'n') || part == std::string(part.size(), 'o'));
    }
    const auto count = std::count(found.begin(), found.end(), 'n');
    torn = torn || (count != 0 && count != 3 * 512);
  }
  EXPECT_TRUE(torn);
}

TEST(MemoryBacking, a_truncation_is_kept_or_lost_until_it_is_synced) {
  auto backing = MemoryBacking::create();
  auto file = make_durable(*backing, "a", "abcd");
  ASSERT_TRUE(file->truncate(2));
  ASSERT_TRUE(file->truncate(3));
  EXPECT_TRUE(outcomes(*backing, "a").contains("abcd"));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{std::string("ab\0", 3)}));
}

TEST(MemoryBacking, names_are_kept_in_order) {
  auto backing = MemoryBacking::create();
  make_durable(*backing, "old", "o");
  make_durable(*backing, "new", "n");
  ASSERT_TRUE(backing->rename("new", "old"));
  auto last = open(*backing, "last");
  std::set<Files> found;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto after = backing->power_loss(seed);
    Files files;
    for (const std::string& path : after->files())
      files[path] = text_of(*after, path);
    found.insert(files);
  }
  EXPECT_EQ(found,
            (std::set<Files>{
                {{"old", "o"}, {"new", "n"}}, {{"old", "n"}}, {{"old", "n"}, {"last", ""}}}));
  ASSERT_TRUE(backing->sync_directory(""));
  EXPECT_EQ(outcomes(*backing, "old"), (std::set<std::string>{"n"}));
}

TEST(MemoryBacking, a_removal_not_synced_may_come_back_and_a_synced_one_never) {
  auto backing = MemoryBacking::create();
  make_durable(*backing, "a", "kept");
  ASSERT_TRUE(backing->remove("a"));
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{"kept", "(none)"}));
  ASSERT_TRUE(backing->sync_directory(""));
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{"(none)"}));
}

TEST(MemoryBacking, a_later_sync_does_not_vouch_for_what_a_failed_one_lost) {
  auto backing = MemoryBacking::create();
  auto file = make_durable(*backing, "a", "..");
  ASSERT_TRUE(file->write(0, as_bytes("1")));
  backing->inject({.operations = change_sync, .count = 1});
  EXPECT_EQ(file->sync().error().code, ErrorCode::io);
  ASSERT_TRUE(file->write(1, as_bytes("2")));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{".2", "12"}));
  EXPECT_EQ(text_of(*backing, "a"), "12");
}

TEST(MemoryBacking, fail_at_fails_all_from_there_on_and_leaves_the_change_under_way_open) {
  auto backing = MemoryBacking::create();
  auto file = make_durable(*backing, "a", ".");
  backing->fail_at(backing->change_count() + 1);
  ASSERT_TRUE(file->write(0, as_bytes("1")));
  Byte byte = 0;
  ASSERT_TRUE(file->read(0, {&byte, 1}));
  EXPECT_EQ(file->sync().error().code, ErrorCode::io);
  EXPECT_EQ(file->read(0, {&byte, 1}).error().code, ErrorCode::io);
  EXPECT_EQ(file->size().error().code, ErrorCode::io);
  EXPECT_EQ(backing->open("a", OpenMode::read).error().code, ErrorCode::io);
  EXPECT_EQ(backing->list("").error().code, ErrorCode::io);
  EXPECT_EQ(file->sync().error().code, ErrorCode::io);
  EXPECT_EQ(outcomes(*backing, "a"), (std::set<std::string>{".", "1"}));

  auto other = MemoryBacking::create();
  make_durable(*other, "a", "x");
  other->fail_at(other->change_count());
  EXPECT_EQ(other->rename("a", "b").error().code, ErrorCode::io);
  EXPECT_EQ(outcomes(*other, "b"), (std::set<std::string>{"x", "(none)"}));
}

TEST(MemoryBacking, a_snapshot_and_its_source_do_not_touch_each_other) {
  auto backing = MemoryBacking::create();
  auto file = make_durable(*backing, "a", "same");
  auto after = backing->power_loss(0);
  ASSERT_TRUE(file->write(0, as_bytes("src ")));
  auto copy = open(*after, "a", OpenMode::read_write);
  EXPECT_EQ(text_of(*after, "a"), "same");
  ASSERT_TRUE(copy->write(0, as_bytes("copy")));
  EXPECT_EQ(text_of(*backing, "a"), "src ");
  EXPECT_EQ(text_of(*after, "a"), "copy");
  EXPECT_EQ(after->change_count(), 1u);
}

TEST(MemoryBacking, injected_failures_match_by_kind_path_and_count) {
  auto backing = MemoryBacking::create();
  auto a = open(*backing, "a");
  auto b = open(*backing, "b");
  backing->inject({.operations = change_write,
                   .path_part = "b",
                   .skip = 1,
                   .count = 1,
                   .code = ErrorCode::no_space,
                   .partial = true});
  EXPECT_TRUE(a->write(0, as_bytes("aaaa")));
  EXPECT_TRUE(b->write(0, as_bytes("....")));
  EXPECT_EQ(b->write(0, as_bytes("bbbb")).error().code, ErrorCode::no_space);
  EXPECT_EQ(text_of(*backing, "b"), "bb..");
  EXPECT_TRUE(b->write(0, as_bytes("BBBB")));
  backing->inject({.operations = operation_read});
  Byte byte = 0;
  EXPECT_EQ(a->read(0, {&byte, 1}).error().code, ErrorCode::io);
  backing->clear_failures();
  EXPECT_TRUE(a->read(0, {&byte, 1}));
}

TEST(MemoryBacking, injected_reads_end_early_or_have_one_bit_wrong_and_say_nothing) {
  const auto backing = MemoryBacking::create();
  const auto file = make_durable(*backing, "file", "0123456789");
  const auto read = [&] {
    std::string text(10, '?');
    const auto got = file->read(0, MutableByteView(reinterpret_cast<Byte*>(text.data()), 10));
    EXPECT_TRUE(got);
    return text.substr(0, got.value_or(0));
  };
  backing->inject({.operations = operation_read, .skip = 1, .count = 1, .partial = true});
  EXPECT_EQ(read(), "0123456789");
  EXPECT_EQ(read(), "01234");
  backing->inject({.operations = operation_read, .count = 1, .flip = true});
  const std::string flipped = read();
  EXPECT_EQ(flipped, std::string("012345678") + static_cast<char>('9' ^ 0x10));
  EXPECT_EQ(read(), "0123456789") << "the medium is as it was";
}

TEST(MemoryBacking, a_full_medium_refuses_growth_but_not_overwrites) {
  auto backing = MemoryBacking::create();
  backing->set_capacity(100);
  auto file = open(*backing, "a");
  ASSERT_TRUE(file->write(0, Bytes(100)));
  EXPECT_TRUE(file->write(0, Bytes(100, 1)));
  EXPECT_EQ(file->write(50, Bytes(51)).error().code, ErrorCode::no_space);
  EXPECT_EQ(file->truncate(101).error().code, ErrorCode::no_space);
  EXPECT_EQ(backing->space()->available_bytes, 0u);
  ASSERT_TRUE(file->truncate(10));
  EXPECT_EQ(backing->space()->available_bytes, 90u);
}

TEST(MemoryBacking, a_read_only_medium_refuses_every_change) {
  auto backing = MemoryBacking::create();
  ASSERT_TRUE(backing->make_directory("db"));
  auto file = make_durable(*backing, "a", "kept");
  backing->set_read_only(true);
  EXPECT_EQ(file->write(0, as_bytes("x")).error().code, ErrorCode::read_only);
  EXPECT_EQ(file->truncate(0).error().code, ErrorCode::read_only);
  EXPECT_EQ(backing->remove("a").error().code, ErrorCode::read_only);
  EXPECT_EQ(backing->rename("a", "b").error().code, ErrorCode::read_only);
  EXPECT_EQ(backing->make_directory("x").error().code, ErrorCode::read_only);
  EXPECT_EQ(backing->open("x", OpenMode::create_new).error().code, ErrorCode::read_only);
  EXPECT_TRUE(backing->make_directory("db"));
  EXPECT_TRUE(backing->open("a", OpenMode::read));
  EXPECT_EQ(text_of(*backing, "a"), "kept");
}

TEST(MemoryBacking, opens_and_names_answer_as_a_file_system_does) {
  auto backing = MemoryBacking::create();
  EXPECT_EQ(backing->open("a", OpenMode::read).error().code, ErrorCode::not_found);
  EXPECT_EQ(backing->open("db/a", OpenMode::create_new).error().code, ErrorCode::not_found);
  EXPECT_EQ(backing->remove("a").error().code, ErrorCode::not_found);
  EXPECT_EQ(backing->rename("a", "b").error().code, ErrorCode::not_found);
  ASSERT_TRUE(backing->make_directory("db"));
  EXPECT_TRUE(backing->make_directory("db"));
  make_durable(*backing, "db/z", "zz");
  make_durable(*backing, "db/b", "b");
  EXPECT_EQ(backing->open("db/b", OpenMode::create_new).error().code, ErrorCode::exists);
  EXPECT_EQ(backing->open("db", OpenMode::read).error().code, ErrorCode::is_directory);
  EXPECT_EQ(backing->remove("db").error().code, ErrorCode::not_empty);
  EXPECT_TRUE(backing->make_directory("db.new"));
  EXPECT_TRUE(backing->rename("db.new", "db.other"));
  EXPECT_FALSE(backing->exists("db.new").value());
  EXPECT_TRUE(backing->remove("db.other"));
  EXPECT_EQ(backing->rename("db/b", "b").error().code, ErrorCode::invalid_argument);
  for (const char* bad : {"", "/a", "a/", "../a", "a/..", ".", "a/b/c", "a//b"}) {
    EXPECT_EQ(backing->open(bad, OpenMode::create_new).error().code, ErrorCode::invalid_argument)
        << bad;
  }
  EXPECT_EQ(*backing->list("db"), (std::vector<std::string>{"b", "z"}));
  EXPECT_EQ(*backing->list(""), (std::vector<std::string>{"db"}));
  EXPECT_EQ(backing->list("no").error().code, ErrorCode::not_found);
  EXPECT_EQ(*backing->file_size("db/z"), 2u);
  EXPECT_TRUE(*backing->exists("db/z"));
  EXPECT_TRUE(*backing->exists("db"));
  EXPECT_FALSE(*backing->exists("db/y"));
  auto reader = open(*backing, "db/z", OpenMode::read);
  EXPECT_EQ(reader->write(0, as_bytes("x")).error().code, ErrorCode::invalid_argument);
  Bytes out(10);
  EXPECT_EQ(*reader->read(1, out), 1u);
  EXPECT_EQ(*reader->read(2, out), 0u);
}

TEST(MemoryBacking, the_hand_of_a_test_changes_files_at_once) {
  auto backing = MemoryBacking::create();
  backing->store("db/a", as_bytes("one"));
  EXPECT_EQ(outcomes(*backing, "db/a"), (std::set<std::string>{"one"}));
  backing->store("db/a", as_bytes("two"));
  EXPECT_EQ(outcomes(*backing, "db/a"), (std::set<std::string>{"two"}));
  backing->erase("db/a");
  EXPECT_EQ(outcomes(*backing, "db/a"), (std::set<std::string>{"(none)"}));
  EXPECT_EQ(backing->change_count(), 0u);
}

// Against the plainest model there is: a string.
TEST(MemoryBacking, random_changes_read_back_as_from_a_string) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  auto backing = MemoryBacking::create();
  auto file = make_durable(*backing, "a", "");
  std::string expected;
  std::string durable;
  for (int step = 0; step < 2000; ++step) {
    const std::uint64_t at = random() % (100u << 10);
    switch (random() % 6) {
      case 0:
        ASSERT_TRUE(file->truncate(at));
        expected.resize(at);
        break;
      case 1:
        ASSERT_TRUE(file->sync());
        durable = expected;
        break;
      case 2:
        ASSERT_EQ(text_of(*backing->power_loss(0), "a"), durable);
        break;
      default: {
        const std::string piece(random() % (40u << 10), static_cast<char>('a' + random() % 26));
        ASSERT_TRUE(file->write(at, as_bytes(piece)));
        if (!piece.empty()) {
          expected.resize(std::max(expected.size(), at + piece.size()));
          expected.replace(at, piece.size(), piece);
        }
        break;
      }
    }
    ASSERT_EQ(*file->size(), expected.size());
  }
  EXPECT_EQ(text_of(*backing, "a"), expected);
  EXPECT_EQ(text_of(*backing->process_kill(), "a"), expected);
}

// A snapshot is one moment. If it has bytes that were written after a sync of another file, it also
// has what that sync saved.
TEST(MemoryBacking, snapshots_are_a_moment_that_all_threads_agree_on) {
  auto backing = MemoryBacking::create();
  auto first = make_durable(*backing, "first", "00000000");
  auto second = make_durable(*backing, "second", "00000000");
  std::jthread writer([&](const std::stop_token& stop) {
    for (int i = 1; !stop.stop_requested(); ++i) {
      const std::string digits = fmt::format("{:08}", i);
      EXPECT_TRUE(first->write(0, as_bytes(digits)));
      EXPECT_TRUE(first->sync());
      EXPECT_TRUE(second->write(0, as_bytes(digits)));
      EXPECT_TRUE(second->sync());
    }
  });
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    auto after = backing->power_loss(seed);
    const int a = std::stoi(text_of(*after, "first"));
    const int b = std::stoi(text_of(*after, "second"));
    ASSERT_TRUE(a == b || a == b + 1) << a << " " << b << ", seed " << seed;
  }
}

}  // namespace
}  // namespace nacre::tests
