// SPDX-License-Identifier: Apache-2.0
// The real volume directory, and whole small files on the real one and on one that loses power.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>

#include "metadata/backing/backing.h"
#include "metadata/backing/posix_error.h"
#include "tests/support/memory_backing.h"
#include "tests/support/temporary_directory.h"

namespace nacre::metadata {
namespace {

using tests::MemoryBacking;
using tests::TemporaryDirectory;

class PosixBacking : public ::testing::Test {
 protected:
  PosixBacking() : directory(open_posix_directory(temporary.path()).value()) {}

  std::string content_of(const std::string& name) const {
    std::ifstream file(temporary.path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  unsigned mode_of(const std::string& name) const {
    struct stat status = {};
    EXPECT_EQ(lstat(temporary.path(name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  TemporaryDirectory temporary;
  std::shared_ptr<BackingDirectory> directory;
};

TEST_F(PosixBacking, writes_pieces_and_reads_them_back) {
  auto file = directory->open("a", OpenMode::create_new).value();
  const ByteView pieces[] = {as_bytes("one"), {}, as_bytes("two"), as_bytes("three")};
  ASSERT_TRUE(file->write(2, pieces));
  ASSERT_TRUE(file->sync());
  EXPECT_EQ(content_of("a"), std::string("\0\0onetwothree", 13));
  Bytes out(20);
  EXPECT_EQ(*file->read(2, out), 11u);
  EXPECT_EQ(as_text(ByteView(out).first(11)), "onetwothree");
  EXPECT_EQ(*file->read(13, out), 0u);
  EXPECT_EQ(*file->size(), 13u);
  ASSERT_TRUE(file->truncate(5));
  EXPECT_EQ(content_of("a"), std::string("\0\0one", 5));
  file->start_writeback(0, 5);
  file->advise(0, 5, true);
  file->advise(0, 5, false);
  ASSERT_TRUE(file->write(0, std::span<const ByteView>()));
}

TEST_F(PosixBacking, writes_more_pieces_than_one_call_takes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  Bytes all(1u << 20);
  for (Byte& byte : all)
    byte = static_cast<Byte>(random());
  std::vector<ByteView> pieces;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t size = std::min<std::size_t>(random() % 300, all.size() - at);
    pieces.push_back(ByteView(all).subspan(at, size));
    at += size;
  }
  ASSERT_GT(pieces.size(), 3000u);
  auto file = directory->open("a", OpenMode::create_or_empty).value();
  ASSERT_TRUE(file->write(7, pieces));
  Bytes out(all.size());
  ASSERT_EQ(*file->read(7, out), out.size());
  EXPECT_EQ(out, all);
}

// Against a model: at any offset, in any pieces, between writes and reads through the cache.
TEST_F(PosixBacking, writes_past_the_cache_what_is_read_through_it) {
  std::minstd_rand random(20261122);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  for (const std::string& folder : {temporary.path(), std::string("/dev/shm")}) {
    const TemporaryDirectory place(folder);
    const auto here = open_posix_directory(place.path()).value();
    auto file = here->open("a", OpenMode::create_new).value();
    std::string model;
    const auto open_count = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
    };
    const auto open_before = open_count();
    for (int round = 0; round < 40; ++round) {
      std::vector<std::string> texts(1 + below(30));
      std::vector<ByteView> pieces;
      std::string whole;
      for (std::string& text : texts) {
        text.resize(below(4) == 0 ? 0 : below(200'000));
        for (char& letter : text)
          letter = static_cast<char>(random() >> 8);
        pieces.push_back(as_bytes(text));
        whole += text;
      }
      const std::size_t at = below(4) == 0 ? below(model.size() + 1) : model.size();
      ASSERT_TRUE(below(5) == 0 ? file->write(at, pieces) : file->write_past_cache(at, pieces));
      model.resize(std::max(model.size(), at + whole.size()));
      model.replace(at, whole.size(), whole);
      if (below(6) == 0) {
        model.resize(below(model.size() + 1));
        ASSERT_TRUE(file->truncate(model.size()));
      }
      if (below(4) == 0) {
        ASSERT_TRUE(file->sync());
      }
      Bytes out(model.size() + 1);
      ASSERT_EQ(*file->read(0, out), model.size()) << folder << ", round " << round;
      ASSERT_TRUE(as_text(ByteView(out).first(model.size())) == model)
          << folder << ", round " << round;
    }
    EXPECT_EQ(open_count(), open_before);  // hundreds of segments are open at once
    ASSERT_TRUE(file->write_past_cache(0, std::span<const ByteView>()));
    ASSERT_FALSE(file->write_past_cache(
        std::uint64_t{1} << 63, std::vector<ByteView>(300, as_bytes(model.substr(0, 4096)))));
  }
}

TEST_F(PosixBacking, keeps_files_and_folders_to_their_owner) {
  const mode_t before = umask(0);
  ASSERT_TRUE(directory->make_directory("db"));
  ASSERT_TRUE(directory->open("db/a", OpenMode::create_new));
  umask(before);
  EXPECT_EQ(mode_of("db"), 0700u);
  EXPECT_EQ(mode_of("db/a"), 0600u);
}

TEST_F(PosixBacking, names_answer_as_in_memory) {
  EXPECT_EQ(directory->open("a", OpenMode::read).error().code, ErrorCode::not_found);
  EXPECT_EQ(directory->open("db/a", OpenMode::create_new).error().code, ErrorCode::not_found);
  EXPECT_EQ(directory->remove("a").error().code, ErrorCode::not_found);
  EXPECT_EQ(directory->rename("a", "b").error().code, ErrorCode::not_found);
  EXPECT_FALSE(*directory->exists("db/a"));
  ASSERT_TRUE(directory->make_directory("db"));
  EXPECT_TRUE(directory->make_directory("db"));
  ASSERT_TRUE(directory->open("db/z", OpenMode::create_new).value()->write(0, as_bytes("zz")));
  ASSERT_TRUE(directory->open("db/b", OpenMode::create_new));
  EXPECT_EQ(directory->open("db/b", OpenMode::create_new).error().code, ErrorCode::exists);
  EXPECT_EQ(directory->open("db", OpenMode::read).error().code, ErrorCode::is_directory);
  EXPECT_EQ(directory->remove("db").error().code, ErrorCode::not_empty);
  EXPECT_TRUE(directory->make_directory("db.new"));
  EXPECT_TRUE(directory->rename("db.new", "db.other"));
  EXPECT_FALSE(directory->exists("db.new").value());
  EXPECT_TRUE(directory->remove("db.other"));
  EXPECT_EQ(directory->make_directory("db/x").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(directory->rename("db/b", "b").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(directory->open("../a", OpenMode::read).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(*directory->list("db"), (std::vector<std::string>{"b", "z"}));
  EXPECT_EQ(*directory->list(""), (std::vector<std::string>{"db"}));
  EXPECT_EQ(directory->list("no").error().code, ErrorCode::not_found);
  EXPECT_EQ(*directory->file_size("db/z"), 2u);
  EXPECT_EQ(directory->file_size("db").error().code, ErrorCode::is_directory);
  ASSERT_TRUE(directory->rename("db/z", "db/b"));
  EXPECT_EQ(content_of("db/b"), "zz");
  ASSERT_TRUE(directory->sync_directory("db"));
  ASSERT_TRUE(directory->sync_directory(""));
  ASSERT_TRUE(directory->open("db/b", OpenMode::create_or_empty));
  EXPECT_EQ(*directory->file_size("db/b"), 0u);
  ASSERT_TRUE(directory->remove("db/b"));
  EXPECT_FALSE(*directory->exists("db/b"));
  EXPECT_GT(directory->space()->total_bytes, 0u);
  EXPECT_EQ(directory->description(), temporary.path());
}

TEST_F(PosixBacking, errors_name_the_file_and_the_systems_words) {
  const Error error = directory->open("segments/1.seg", OpenMode::read).error();
  EXPECT_NE(error.message.find(temporary.path() + "/segments"), std::string::npos);
  EXPECT_NE(error.message.find("No such file or directory"), std::string::npos);
}

TEST_F(PosixBacking, follows_no_symbolic_link_within_the_volume) {
  TemporaryDirectory outside;
  std::ofstream(outside.path("victim")) << "secret";
  std::filesystem::create_symlink(outside.path("victim"), temporary.path("keyring"));
  std::filesystem::create_symlink(outside.path(), temporary.path("db"));
  EXPECT_EQ(directory->open("keyring", OpenMode::read).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(directory->open("db/victim", OpenMode::read));
  EXPECT_FALSE(directory->remove("db/victim"));
  EXPECT_FALSE(directory->make_directory("db"));
  EXPECT_FALSE(directory->list("db"));
  EXPECT_EQ(*directory->exists("keyring"), true);
  // A new file takes its place.
  EXPECT_TRUE(directory->open("keyring", OpenMode::create_or_empty));
  EXPECT_TRUE(
      std::filesystem::is_regular_file(std::filesystem::symlink_status(temporary.path("keyring"))));
  EXPECT_EQ(std::filesystem::file_size(outside.path("victim")), 6u);
}

TEST_F(PosixBacking, changes_no_file_that_has_another_name) {
  TemporaryDirectory outside;
  const std::string victim = outside.path("victim");
  for (const std::string name : {"keyring.new", "superblock", "000001.seg"}) {
    std::ofstream(victim) << "secret";
    ASSERT_EQ(::link(victim.c_str(), temporary.path(name).c_str()), 0);
    EXPECT_FALSE(directory->open(name, OpenMode::create_new));
    const auto opened = directory->open(name, OpenMode::read_write);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().code, ErrorCode::not_permitted);
    EXPECT_NE(opened.error().message.find("hard link"), std::string::npos);
    EXPECT_TRUE(directory->open(name, OpenMode::read)) << "a copy made of hard links";
    const auto made = directory->open(name, OpenMode::create_or_empty);
    ASSERT_TRUE(made) << name;
    ASSERT_TRUE((*made)->write(0, ByteView(as_bytes("x"))));
    EXPECT_EQ(std::filesystem::hard_link_count(victim), 1u) << name;
    EXPECT_EQ(std::filesystem::file_size(victim), 6u) << name;
    ASSERT_TRUE(directory->remove(name));
    std::filesystem::remove(victim);
  }
  std::ofstream(victim) << "secret";
  ASSERT_EQ(::link(victim.c_str(), temporary.path("keyring.new").c_str()), 0);
  ASSERT_TRUE(replace_file(*directory, "keyring", as_bytes("new keyring")));
  EXPECT_EQ(std::filesystem::file_size(victim), 6u);
  EXPECT_EQ(content_of("keyring"), "new keyring");
}

TEST_F(PosixBacking, does_not_hang_on_a_fifo) {
  ASSERT_EQ(mkfifo(temporary.path("superblock").c_str(), 0600), 0);
  EXPECT_EQ(directory->open("superblock", OpenMode::read).error().code, ErrorCode::corrupt);
}

TEST_F(PosixBacking, refuses_offsets_that_no_file_has) {
  auto file = directory->open("a", OpenMode::create_new).value();
  Byte byte = 0;
  EXPECT_EQ(file->write(1ull << 63, ByteView(&byte, 1)).error().code, ErrorCode::too_big);
  EXPECT_EQ(file->read(~0ull, {&byte, 1}).error().code, ErrorCode::too_big);
  EXPECT_EQ(file->truncate(1ull << 63).error().code, ErrorCode::too_big);
}

TEST(PosixDirectory, that_cannot_be_opened_says_why) {
  TemporaryDirectory temporary;
  std::ofstream(temporary.path("file")) << "x";
  EXPECT_EQ(open_posix_directory(temporary.path("no")).error().code, ErrorCode::not_found);
  EXPECT_EQ(open_posix_directory(temporary.path("file")).error().code, ErrorCode::not_directory);
}

TEST(PosixError, keeps_apart_what_the_caller_must_treat_apart) {
  EXPECT_EQ(code_of_errno(ENOSPC), ErrorCode::no_space);
  EXPECT_EQ(code_of_errno(EDQUOT), ErrorCode::no_space);
  EXPECT_EQ(code_of_errno(EROFS), ErrorCode::read_only);
  EXPECT_EQ(code_of_errno(ESTALE), ErrorCode::stale);
  EXPECT_EQ(code_of_errno(EIO), ErrorCode::io);
  EXPECT_EQ(code_of_errno(EREMOTEIO), ErrorCode::io);
  EXPECT_EQ(code_of_errno(EMFILE), ErrorCode::out_of_memory);
  EXPECT_EQ(code_of_errno(EACCES), ErrorCode::permission);
  EXPECT_EQ(code_of_errno(EPERM), ErrorCode::not_permitted);
}

TEST_F(PosixBacking, small_files_are_read_and_replaced_whole) {
  ASSERT_TRUE(replace_file(*directory, "a", as_bytes("first")));
  ASSERT_TRUE(replace_file(*directory, "a", as_bytes("2nd")));
  EXPECT_EQ(as_text(*read_file(*directory, "a")), "2nd");
  EXPECT_EQ(*directory->list(""), (std::vector<std::string>{"a"}));
  EXPECT_EQ(read_file(*directory, "a", 2).error().code, ErrorCode::too_big);
  EXPECT_EQ(read_file(*directory, "b").error().code, ErrorCode::not_found);
}

TEST(SmallFiles, are_old_or_new_after_power_loss_at_every_change) {
  const auto old_state = MemoryBacking::create();
  old_state->store("db/a", as_bytes("old"));
  for (std::uint64_t at = 0;; ++at) {
    const auto backing = old_state->process_kill();
    backing->fail_at(at);
    const auto replaced = replace_file(*backing, "db/a", as_bytes("new!"));
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const auto found = backing->power_loss(seed)->load("db/a");
      ASSERT_TRUE(found) << at << " " << seed;
      const std::string_view text = as_text(*found);
      ASSERT_TRUE(text == "new!" || (!replaced && text == "old")) << at << " " << seed << text;
    }
    if (replaced) {
      EXPECT_EQ(at, backing->change_count());
      break;
    }
    ASSERT_LT(at, 20u);
  }
}

TEST(SmallFiles, a_full_medium_leaves_the_old_file_and_no_leftover) {
  const auto backing = MemoryBacking::create();
  backing->store("a", as_bytes("old"));
  backing->set_capacity(5);
  EXPECT_EQ(replace_file(*backing, "a", as_bytes("larger")).error().code, ErrorCode::no_space);
  EXPECT_EQ(backing->files(), (std::vector<std::string>{"a"}));
  EXPECT_EQ(as_text(*read_file(*backing, "a")), "old");
}

}  // namespace
}  // namespace nacre::metadata
