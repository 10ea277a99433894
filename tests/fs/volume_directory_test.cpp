// SPDX-License-Identifier: Apache-2.0
// Reading directories: every entry once, whatever changes meanwhile.
#include "tests/fs/volume_fixture.h"

#include "fs/volume/directory_offsets.h"

#include <random>
#include <set>

#include <dirent.h>

namespace nacre::tests {
namespace {

using fs::DirectoryEntry;
using fs::InodeNumber;

class VolumeDirectory : public VolumeTest {
 protected:
  // Reads count entries at a time, as the kernel does, and calls between after each step.
  std::multiset<std::string> read_in_steps(
      InodeNumber directory, std::size_t count, const std::function<void()>& between = [] {}) {
    std::multiset<std::string> names;
    std::uint64_t cookie = 0;
    for (bool more = true; more; between()) {
      std::size_t taken = 0;
      more = false;
      NACRE_EXPECT_OK(
          volume().read_directory(directory, cookie, false, [&](const DirectoryEntry& entry) {
            if (taken == count) {
              more = true;
              return false;
            }
            ++taken;
            names.emplace(entry.name);
            cookie = entry.cookie;
            return true;
          }));
    }
    return names;
  }
};

TEST_F(VolumeDirectory, begins_with_itself_and_its_parent) {
  const InodeNumber directory = make_directory(root, "d");
  std::vector<std::tuple<std::string, InodeNumber, int, std::uint64_t>> entries;
  NACRE_EXPECT_OK(volume().read_directory(directory, 0, true, [&](const DirectoryEntry& entry) {
    EXPECT_EQ(entry.attributes, nullptr);
    entries.emplace_back(entry.name, entry.inode, entry.type, entry.cookie);
    return true;
  }));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0], std::tuple(std::string("."), directory, DT_DIR, 1u));
  EXPECT_EQ(entries[1], std::tuple(std::string(".."), root, DT_DIR, 2u));
  EXPECT_CODE(not_directory, volume().read_directory(make_file(root, "f"), 0, false,
                                                     [](const DirectoryEntry&) { return true; }));
}

TEST_F(VolumeDirectory, shows_each_entry_once_however_it_is_cut) {
  const InodeNumber directory = make_directory(root, "d");
  std::multiset<std::string> expected = {".", ".."};
  for (int i = 0; i < 700; ++i) {
    const std::string name = "entry " + std::to_string(i);
    if (i % 7 == 0) {
      make_directory(directory, name);
    } else {
      make_file(directory, name);
    }
    expected.insert(name);
    if (i == 300) NACRE_EXPECT_OK(volume().sync_all());
  }
  for (const std::size_t count : {1, 2, 31, 32, 33, 100, 1000}) {
    EXPECT_EQ(read_in_steps(directory, count), expected) << count;
  }
}

TEST_F(VolumeDirectory, neither_repeats_nor_misses_what_stays_while_names_come_and_go) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const InodeNumber directory = make_directory(root, "d");
  std::set<std::string> staying, passing;
  for (int i = 0; i < 200; ++i) {
    staying.insert("staying " + std::to_string(i));
    passing.insert("passing " + std::to_string(i));
  }
  for (const auto& name : staying)
    make_file(directory, name);
  std::set<std::string> there;
  const auto names = read_in_steps(directory, 3, [&] {
    for (int i = 0; i < 10; ++i) {
      auto place = passing.begin();
      std::advance(place, random() % passing.size());
      if (there.erase(*place) > 0) {
        NACRE_EXPECT_OK(volume().unlink(directory, *place));
      } else {
        make_file(directory, *place);
        there.insert(*place);
      }
    }
    if (random() % 20 == 0) NACRE_EXPECT_OK(volume().sync_all());
  });
  for (const auto& name : staying)
    EXPECT_EQ(names.count(name), 1u) << name;
}

TEST_F(VolumeDirectory, counts_lookups_of_entries_that_were_taken_alone) {
  const InodeNumber directory = make_directory(root, "d");
  for (int i = 0; i < 10; ++i) {
    const InodeNumber file = make_file(directory, std::to_string(i));
    write(file, 0, "12345");
  }
  remount();
  const InodeNumber again = find(root, "d");
  std::vector<InodeNumber> taken;
  NACRE_EXPECT_OK(volume().read_directory(again, 0, true, [&](const DirectoryEntry& entry) {
    if (entry.attributes == nullptr) return true;
    EXPECT_EQ(entry.attributes->inode, entry.inode);
    EXPECT_EQ(entry.attributes->size, 5u);
    EXPECT_EQ(entry.attributes->mode, S_IFREG | 0644u);
    EXPECT_EQ(entry.type, DT_REG);
    if (taken.size() == 4) return false;
    taken.push_back(entry.inode);
    return true;
  }));
  EXPECT_EQ(taken.size(), 4u);
  EXPECT_EQ(mounted().stats().known_inodes, 2u + 4u);
  for (const InodeNumber inode : taken)
    volume().forget(inode, 1);
  EXPECT_EQ(mounted().stats().known_inodes, 2u);
}

// Rows are put by hand: names whose hashes are equal cannot be found.
TEST_F(VolumeDirectory, misses_nothing_among_names_of_one_hash) {
  const InodeNumber directory = make_directory(root, "d");
  unmount();
  std::multiset<std::string> expected = {".", ".."};
  {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    for (const auto& [hash, name] : std::vector<std::pair<std::uint64_t, std::string>>{
             {3, "first"}, {5, "a"}, {5, "b"}, {5, "c"}, {9, "last"}}) {
      (*database)->put(metadata::Table::dentries, metadata::dentry_key(directory, hash, name),
                       metadata::encode(metadata::DentryRow{root, DT_DIR}));
      expected.insert(name);
    }
    (*database)->freeze();
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
  }
  mount();
  EXPECT_EQ(read_in_steps(directory, 100), expected);
  for (const std::size_t count : {3, 4, 5}) {
    const auto names = read_in_steps(directory, count);
    for (const auto& name : expected) {
      EXPECT_GE(names.count(name), 1u) << name << " in steps of " << count;
    }
  }
}

// Several hashes have the same upper or the same lower bits. A listing that is interrupted anywhere
// still shows each name once, and goes on after a remount from its place.
TEST_F(VolumeDirectory, offsets_of_31_bits_lead_to_the_place_that_they_were_given_for) {
  const InodeNumber directory = make_directory(root, "d");
  unmount();
  std::vector<std::uint64_t> hashes;
  for (const std::uint64_t upper : {0ull, 1ull, 2ull, 3ull, 77ull, 1ull << 29, (1ull << 30) - 1}) {
    for (const std::uint64_t lower : {3ull, 4ull, 99ull, (1ull << 33) - 2, (1ull << 33) - 1})
      hashes.push_back((upper << 33) + lower);
  }
  {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    for (const std::uint64_t hash : hashes) {
      (*database)->put(metadata::Table::dentries,
                       metadata::dentry_key(directory, hash, std::to_string(hash)),
                       metadata::encode(metadata::DentryRow{root, DT_DIR}));
    }
    (*database)->freeze();
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
  }
  mount();
  const auto list_from = [&](std::uint64_t offset, bool with_attributes) {
    std::vector<std::pair<std::string, std::uint64_t>> listed;
    NACRE_EXPECT_OK(volume().read_directory(directory, offset, with_attributes,
                                            [&](const DirectoryEntry& entry) {
                                              listed.emplace_back(entry.name, entry.cookie);
                                              return true;
                                            }));
    return listed;
  };
  const auto whole = list_from(2, false);
  ASSERT_EQ(whole.size(), hashes.size());
  for (const auto& [name, offset] : whole)
    EXPECT_LE(offset, 0x7fff'ffffu) << name;
  for (const bool again : {false, true}) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      // After a remount, a ticket whose lower bits belong to two names is not valid.
      const auto same = [&](const auto& other) {
        return (std::stoull(other.first) & 0x3fff'ffff) == (hashes[i] & 0x3fff'ffff);
      };
      if (again && whole[i].second >= 1u << 30 &&
          std::count_if(whole.begin(), whole.end(), same) > 1) {
        continue;
      }
      for (const bool with_attributes : {false, true}) {
        auto rest = list_from(whole[i].second, with_attributes);
        // If two places have the same ticket, names are listed again. None is missed.
        ASSERT_GE(rest.size(), whole.size() - i - 1) << i;
        rest.erase(rest.begin(), rest.end() - static_cast<long>(whole.size() - i - 1));
        for (std::size_t k = 0; k < rest.size(); ++k)
          EXPECT_EQ(rest[k].first, whole[i + 1 + k].first) << i;
      }
    }
    unmount();
    mount();
  }
}

TEST(DirectoryOffsets, are_few_and_short) {
  using fs::DirectoryOffsets;
  constexpr std::uint64_t low = (std::uint64_t{1} << 33) - 1;
  const InodeNumber directory{7};
  DirectoryOffsets offsets(2);
  // The last name of its upper bits needs no table.
  const std::uint64_t alone = DirectoryOffsets::place_behind((5ull << 33) + 9, 6ull << 33);
  EXPECT_EQ(alone, (5ull << 33) + low);
  EXPECT_EQ(offsets.offset_of(directory, alone, 2), 5u);
  EXPECT_EQ(offsets.place_of(directory, 5), alone);
  EXPECT_EQ(DirectoryOffsets::place_behind((5ull << 33) + 9, DirectoryOffsets::past_all_hashes),
            alone);
  // Other names have tickets. The table keeps the latest of them.
  std::vector<std::uint64_t> given;
  for (const std::uint64_t lower : {9ull, 10ull, 11ull}) {
    const std::uint64_t hash = (5ull << 33) + lower;
    const std::uint64_t place = DirectoryOffsets::place_behind(hash, hash + 1);
    EXPECT_EQ(place, hash);
    given.push_back(offsets.offset_of(directory, place, 2));
    EXPECT_TRUE(DirectoryOffsets::is_ticket(given.back()));
    EXPECT_TRUE(DirectoryOffsets::has_ticket(hash, given.back()));
    EXPECT_LE(given.back(), 0x7fff'ffffu);
  }
  EXPECT_EQ(offsets.place_of(directory, given[0]), std::nullopt);
  EXPECT_EQ(offsets.place_of(directory, given[2]), (5ull << 33) + 11);
  EXPECT_EQ(offsets.place_of(InodeNumber{8}, given[2]), std::nullopt);
  // One ticket is never two places.
  EXPECT_EQ(offsets.offset_of(directory, (6ull << 33) + 11, 1234), 1234u);
}

TEST_F(VolumeDirectory, lists_an_entry_whose_inode_is_damaged) {
  const InodeNumber file = make_file(root, "damaged");
  make_file(root, "fine");
  unmount();
  {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    (*database)->erase(metadata::Table::inodes, metadata::inode_key(file));
    (*database)->freeze();
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
  }
  mount();
  std::map<std::string, bool> has_attributes;
  NACRE_EXPECT_OK(volume().read_directory(root, 2, true, [&](const DirectoryEntry& entry) {
    has_attributes[std::string(entry.name)] = entry.attributes != nullptr;
    return true;
  }));
  EXPECT_EQ(has_attributes, (std::map<std::string, bool>{{"damaged", false}, {"fine", true}}));
  const auto found = volume().lookup(root, "damaged");
  EXPECT_CODE(missing, found);
  EXPECT_NE(found.error().message.find("/damaged"), std::string::npos) << found.error().message;
}

}  // namespace
}  // namespace nacre::tests
