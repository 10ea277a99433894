// SPDX-License-Identifier: Apache-2.0
// Large directories that are read ahead of the programs that list them. A listing returns the names
// that exist at that moment, whatever changed since they were read.
#include <map>
#include <random>
#include <set>

#include <dirent.h>
#include <fmt/format.h>

#include "fs/volume/list_ahead.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::DirectoryEntry;
using fs::InodeNumber;

struct Listed {
  InodeNumber inode;
  std::uint64_t size = 0;
  auto operator<=>(const Listed&) const = default;
};

class VolumeListAhead : public VolumeTest {
 protected:
  // About a reply of the kernel's.
  static constexpr std::size_t step_count = 180;

  // Lists one step, moves cookie along, and forgets the listed inodes at once. Returns false at the
  // end of the directory.
  bool step(InodeNumber directory, std::uint64_t& cookie, std::size_t count,
            std::multimap<std::string, Listed>& listed) {
    std::size_t taken = 0;
    bool more = false;
    NACRE_EXPECT_OK(
        volume().read_directory(directory, cookie, true, [&](const DirectoryEntry& entry) {
          if (taken == count) {
            more = true;
            return false;
          }
          ++taken;
          cookie = entry.cookie;
          if (entry.attributes == nullptr) return true;
          EXPECT_EQ(entry.attributes->inode, entry.inode) << entry.name;
          listed.emplace(entry.name, Listed{entry.inode, entry.attributes->size});
          return true;
        }));
    for (const auto& [name, found] : listed)
      volume().forget(found.inode, 1);
    volume().go_on_listing();
    return more;
  }
  std::multimap<std::string, Listed> list_in_steps(InodeNumber directory, std::size_t count) {
    std::multimap<std::string, Listed> all;
    std::uint64_t cookie = 0;
    for (bool more = true; more;) {
      std::multimap<std::string, Listed> listed;
      more = step(directory, cookie, count, listed);
      all.merge(listed);
    }
    return all;
  }
  std::map<std::string, Listed> make_files(InodeNumber directory, std::size_t count) {
    std::map<std::string, Listed> files;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = fmt::format("file {}", i);
      files[name] = {make_file(directory, name)};
      volume().forget(files[name].inode, 1);
    }
    return files;
  }
  static std::multimap<std::string, Listed> each_once(const std::map<std::string, Listed>& files) {
    return {files.begin(), files.end()};
  }
};

TEST_F(VolumeListAhead, shows_each_entry_once_however_it_is_cut) {
  const InodeNumber directory = make_directory(root, "d");
  const auto files = make_files(directory, 3000);
  for (const std::size_t count : {1u, 127u, 128u, 180u, 1023u, 1024u, 5000u})
    EXPECT_EQ(list_in_steps(directory, count), each_once(files)) << count;
  remount();
  const InodeNumber again = find(root, "d");
  for (const std::size_t count : {33u, 180u})
    EXPECT_EQ(list_in_steps(again, count), each_once(files)) << count;
  EXPECT_EQ(mounted().stats().known_inodes, 2u);
}

TEST_F(VolumeListAhead, reads_each_row_once) {
  constexpr std::size_t file_count = 5000;
  make_files(make_directory(root, "d"), file_count);
  remount();
  const InodeNumber directory = find(root, "d");
  const auto before = mounted().stats().database.row_reads;
  EXPECT_EQ(list_in_steps(directory, step_count).size(), file_count);
  const auto reads = mounted().stats().database.row_reads - before;
  EXPECT_GE(reads, 2 * file_count);
  EXPECT_LE(reads, 2 * file_count + file_count / 10);
}

// Between two steps names come and go, are exchanged and replaced, files grow, commits come, and
// all that was known of inodes is forgotten.
TEST_F(VolumeListAhead, every_step_shows_what_is_there_at_that_moment) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const InodeNumber directory = make_directory(root, "d");
  const InodeNumber other = make_directory(root, "other");
  auto files = make_files(directory, 2500);
  const auto any = [&] {
    auto place = files.lower_bound(fmt::format("file {}", random() % 2500));
    return place == files.end() ? files.begin() : place;
  };
  const auto change = [&](int i) {
    const auto place = any();
    switch (random() % 6) {
      case 0:
        NACRE_EXPECT_OK(volume().unlink(directory, place->first));
        files.erase(place);
        break;
      case 1: {
        const std::string name = fmt::format("file {}+{}", random() % 2500, i);
        const InodeNumber made = make_file(directory, name);
        volume().forget(made, 1);
        files[name] = {made};
        break;
      }
      case 2: {
        const auto to = any();
        if (to == place) break;
        NACRE_EXPECT_OK(volume().rename(directory, place->first, directory, to->first,
                                        fs::RenameMode::exchange));
        std::swap(place->second, to->second);
        break;
      }
      case 3: {
        const auto to = any();
        if (to == place) break;
        NACRE_EXPECT_OK(volume().rename(directory, place->first, directory, to->first,
                                        fs::RenameMode::replace));
        to->second = place->second;
        files.erase(place);
        break;
      }
      case 4:
        NACRE_EXPECT_OK(volume().rename(directory, place->first, other, std::to_string(i),
                                        fs::RenameMode::replace));
        files.erase(place);
        break;
      default:
        place->second.size = random() % 10'000;
        NACRE_EXPECT_OK(
            volume().change_attributes(place->second.inode, {.size = place->second.size}));
    }
  };
  int changes = 0;
  for (int round = 0; round < 6; ++round) {
    std::set<std::string> seen;
    auto stayed = files;
    std::uint64_t cookie = 0;
    for (bool more = true; more;) {
      std::multimap<std::string, Listed> listed;
      more = step(directory, cookie, 1 + random() % 400, listed);
      for (const auto& [name, found] : listed) {
        ASSERT_TRUE(files.contains(name)) << name << " is listed and is not there";
        ASSERT_EQ(found, files[name]) << name;
        seen.insert(name);
      }
      // Names are changed only now and then, since otherwise nothing would ever be read ahead.
      if (random() % 3 == 0) {
        for (std::uint64_t count = random() % 20; count > 0; --count)
          change(changes++);
      } else if (const auto place = any(); true) {
        place->second.size += 10;
        NACRE_EXPECT_OK(
            volume().change_attributes(place->second.inode, {.size = place->second.size}));
      }
      if (random() % 10 == 0) NACRE_EXPECT_OK(volume().sync_all());
      std::erase_if(stayed, [&](const auto& entry) {
        const auto now = files.find(entry.first);
        return now == files.end() || now->second.inode != entry.second.inode;
      });
    }
    for (const auto& [name, file] : stayed)
      EXPECT_TRUE(seen.contains(name)) << name << " was there all the while and is not listed";
    EXPECT_EQ(list_in_steps(directory, step_count), each_once(files));
  }
}

// The rows of a failed commit are in no table yet, and the inodes are no longer in memory.
TEST_F(VolumeListAhead, shows_what_waits_for_a_commit_that_failed) {
  const InodeNumber directory = make_directory(root, "d");
  auto files = make_files(directory, 1000);
  remount();
  const InodeNumber again = find(root, "d");
  for (auto& [name, file] : files) {
    if (file.inode.value % 3 == 0) continue;
    file.size = file.inode.value;
    NACRE_EXPECT_OK(volume().change_attributes(file.inode, {.size = file.size}));
  }
  backing_->inject({.operations = change_write, .path_part = "db/", .code = ErrorCode::no_space});
  EXPECT_CODE(no_space, volume().sync_all());
  EXPECT_EQ(mounted().stats().known_inodes, 2u);
  EXPECT_EQ(list_in_steps(again, step_count), each_once(files));
  backing_->clear_failures();
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(list_in_steps(again, step_count), each_once(files));
}

// A reader that stopped in the middle keeps no file from being erased.
TEST_F(VolumeListAhead, what_is_deleted_is_erased_though_it_was_read_ahead) {
  const InodeNumber directory = make_directory(root, "d");
  const auto files = make_files(directory, 2000);
  NACRE_EXPECT_OK(volume().sync_all());
  std::uint64_t cookie = 0;
  std::multimap<std::string, Listed> listed;
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(step(directory, cookie, step_count, listed = {}));
  for (const auto& [name, file] : files)
    NACRE_EXPECT_OK(volume().unlink(directory, name));
  EXPECT_FALSE(step(directory, cookie, step_count, listed = {}));
  EXPECT_EQ(listed.size(), 0u);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().inode_count, 2u);
  EXPECT_EQ(mounted().stats().known_inodes, 2u);
}

// Memory stays bounded, and so does what is kept for them.
TEST_F(VolumeListAhead, readers_who_stop_keep_only_so_much) {
  std::vector<InodeNumber> directories;
  for (std::size_t i = 0; i < 3 * fs::ListAhead::piece_count_max; ++i) {
    directories.push_back(make_directory(root, std::to_string(i)));
    make_files(directories.back(), 600);
  }
  NACRE_EXPECT_OK(volume().sync_all());
  const auto before = mounted().stats().known_inodes;
  for (const InodeNumber directory : directories) {
    std::uint64_t cookie = 0;
    std::multimap<std::string, Listed> listed;
    EXPECT_TRUE(step(directory, cookie, step_count, listed));
  }
  EXPECT_LE(mounted().stats().known_inodes,
            before + (fs::ListAhead::piece_count_max + 1) * fs::ListAhead::entry_count_max);
  remount();
}

TEST_F(VolumeListAhead, an_entry_of_a_damaged_inode_is_listed_among_many) {
  const InodeNumber directory = make_directory(root, "d");
  auto files = make_files(directory, 1000);
  unmount();
  {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    for (const std::string name : {"file 7", "file 500"})
      (*database)->erase(metadata::Table::inodes, metadata::inode_key(files[name].inode));
    (*database)->put(metadata::Table::inodes, metadata::inode_key(files["file 900"].inode),
                     "not a row");
    (*database)->freeze();
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
  }
  mount();
  std::set<std::string> damaged;
  std::size_t count = 0;
  NACRE_EXPECT_OK(volume().read_directory(find(root, "d"), 2, true, [&](const auto& entry) {
    if (entry.attributes == nullptr) damaged.emplace(entry.name);
    ++count;
    return true;
  }));
  EXPECT_EQ(count, files.size());
  EXPECT_EQ(damaged, (std::set<std::string>{"file 7", "file 500", "file 900"}));
}

// Rows are put by hand: names whose hashes are equal cannot be found. All of them are links of one
// inode.
TEST_F(VolumeListAhead, misses_nothing_among_names_of_one_hash) {
  const InodeNumber directory = make_directory(root, "d");
  const InodeNumber file = make_file(directory, "zzz");
  unmount();
  std::set<std::string> expected;
  {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      const std::string name = fmt::format("name {}", i);
      (*database)->put(metadata::Table::dentries, metadata::dentry_key(directory, 3 + i / 10, name),
                       metadata::encode(metadata::DentryRow{file, DT_REG}));
      expected.insert(name);
    }
    (*database)->freeze();
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
  }
  mount();
  expected.insert("zzz");
  for (const std::size_t count : {13u, 177u, 180u, 333u, 2000u}) {
    std::set<std::string> names;
    for (const auto& [name, listed] : list_in_steps(directory, count)) {
      EXPECT_EQ(listed.inode, file);
      names.insert(name);
    }
    EXPECT_EQ(names, expected) << "in steps of " << count;
  }
}

TEST_F(VolumeListAhead, many_read_one_directory_while_others_change_it) {
  constexpr int thread_count = 4;
  const InodeNumber directory = make_directory(root, "d");
  const auto files = make_files(directory, 1500);
  std::vector<std::thread> threads;
  for (int mine = 0; mine < thread_count; ++mine) {
    threads.emplace_back([&, mine] {
      for (int round = 0; round < 10; ++round) {
        if (mine == 0) {
          const std::string name = fmt::format("passing {}", round % 5);
          if (round % 10 < 5) {
            volume().forget(make_file(directory, name), 1);
          } else {
            NACRE_EXPECT_OK(volume().unlink(directory, name));
          }
          NACRE_EXPECT_OK(volume().sync_all());
          continue;
        }
        auto found = list_in_steps(directory, step_count + static_cast<std::size_t>(mine));
        std::erase_if(found, [](const auto& entry) { return entry.first.starts_with("passing"); });
        EXPECT_EQ(found, each_once(files));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().known_inodes, 2u);
}

}  // namespace
}  // namespace nacre::tests
