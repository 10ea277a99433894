// SPDX-License-Identifier: Apache-2.0
// Two branches of one database's history, with the same keys and the same names of files: a backup
// that was restored, a copy that was opened. In format 2 no mixture of their files opens as a state
// that neither of them ever had.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "metadata/rescue/database_rescue.h"
#include "metadata/sealed_fs/file_header.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using namespace metadata;

using BranchRows = std::map<std::string, std::string>;
using Disk = std::shared_ptr<MemoryBacking>;

std::shared_ptr<const KeyTree> branch_keys() {
  return make_keys(7, EpochFormat::two);
}

std::unique_ptr<Database> open_branch(const Disk& disk, bool create = false,
                                      bool read_only = false) {
  auto options = small_options();
  options.create = create;
  options.read_only = read_only;
  auto database = Database::open(disk, branch_keys(), options);
  EXPECT_TRUE(database) << database.error().message;
  return database ? std::move(*database) : nullptr;
}

Result<BranchRows> branch_rows(const Disk& disk, bool read_only) {
  auto options = small_options();
  options.read_only = read_only;
  NACRE_ASSIGN(const auto database, Database::open(disk, branch_keys(), options));
  BranchRows content;
  for (const Table table : {Table::inodes, Table::dentries, Table::xattrs}) {
    NACRE_TRY(database->scan(table, "", "", [&](std::string_view key, std::string_view value) {
      content[std::string(to_string(table)) + "/" + std::string(key)] = value;
      return true;
    }));
  }
  return content;
}

// A branch, and every state that was its newest once.
struct Branch {
  Disk disk;
  std::vector<BranchRows> states;
};

class BranchWriter {
 public:
  BranchWriter(Branch& branch, std::string name, bool create = false)
      : branch_(branch), name_(std::move(name)), database_(open_branch(branch.disk, create)) {
    note();
  }
  void put(Table table, int group) {
    for (int row = 0; row < 4; row++) {
      database_->put(table, "row" + std::to_string(row),
                     name_ + std::to_string(group) + std::string(100, 'x'));
    }
    EXPECT_TRUE(commit(*database_));
    note();
  }
  // Moves all rows to tables. The next row begins another log.
  void flush() { EXPECT_TRUE(database_->snapshot()); }
  void close() {
    EXPECT_TRUE(database_->close());
    database_ = nullptr;
  }

 private:
  void note() { branch_.states.push_back(branch_rows(branch_.disk->process_kill(), true).value()); }
  Branch& branch_;
  const std::string name_;
  std::unique_ptr<Database> database_;
};

void write_branch(BranchWriter& writer) {
  writer.put(Table::inodes, 1);
  writer.put(Table::dentries, 1);
  writer.flush();
  writer.put(Table::inodes, 2);
  writer.put(Table::xattrs, 2);
}

// The files of the folder that decide what the database holds.
std::vector<std::string> branch_files(const Branch& a, const Branch& b) {
  std::set<std::string> paths;
  for (const Branch* branch : {&a, &b}) {
    for (const std::string& path : branch->disk->files()) {
      const FileClass file_class = parse_file_name(path).file_class;
      if (file_class == FileClass::info_log || path.ends_with("IDENTITY")) continue;
      paths.insert(path);
    }
  }
  return {paths.begin(), paths.end()};
}

Disk mixed(const Branch& a, const Branch& b, const std::vector<std::string>& paths,
           std::uint64_t from_a) {
  const Disk disk = b.disk->process_kill();
  for (std::size_t i = 0; i < paths.size(); i++) {
    if ((from_a >> i & 1) == 0) continue;
    if (const auto bytes = a.disk->load(paths[i])) {
      disk->store(paths[i], *bytes);
    } else {
      disk->erase(paths[i]);
    }
  }
  return disk;
}

bool holds(const std::vector<BranchRows>& states, const BranchRows& content) {
  return std::find(states.begin(), states.end(), content) != states.end();
}

// Tries every mixture of files, also with files missing. If only one branch's files count in it,
// the result is that branch's state, or an earlier one if the newest log is gone
// (docs/SECURITY.md).
void expect_no_mixture(const Branch& a, const Branch& b) {
  const auto paths = branch_files(a, b);
  ASSERT_GT(paths.size(), 4u);
  ASSERT_LT(paths.size(), 14u);
  unsigned opened = 0;
  for (std::uint64_t from_a = 0; from_a < 1ull << paths.size(); from_a++) {
    const Disk disk = mixed(a, b, paths, from_a);
    for (const bool read_only : {true, false}) {
      const auto content = branch_rows(disk, read_only);
      std::string which;
      for (std::size_t i = 0; i < paths.size(); i++) {
        if ((from_a >> i & 1) != 0) which += paths[i] + " ";
      }
      if (content) {
        ++opened;
        ASSERT_TRUE(holds(a.states, *content) || holds(b.states, *content))
            << "a state that never was, with these of the other branch: " << which;
        continue;
      }
      const ErrorCode code = content.error().code;
      ASSERT_TRUE(code == ErrorCode::tampered || code == ErrorCode::missing ||
                  code == ErrorCode::rolled_back || code == ErrorCode::corrupt)
          << which << content.error().message;
    }
  }
  EXPECT_GE(opened, 4u);  // the two as they are
}

// A repair reads a folder in which a log of another branch lies. It is not enough that each row is
// genuine.
TEST(DatabaseBranches, give_no_rows_of_another_branchs_log_to_a_repair) {
  Branch base{.disk = MemoryBacking::create(), .states = {}};
  {
    BranchWriter writer(base, "base", true);
    writer.put(Table::inodes, 0);
    writer.close();
  }
  Branch a{.disk = base.disk->process_kill(), .states = base.states};
  Branch b{.disk = base.disk->process_kill(), .states = base.states};
  BranchWriter writer_a(a, "a");
  BranchWriter writer_b(b, "b");
  write_branch(writer_a);
  write_branch(writer_b);
  unsigned count = 0;
  for (const std::string& path : branch_files(a, b)) {
    if (!path.ends_with(".log") || !a.disk->load(path) || !b.disk->load(path)) continue;
    const Disk disk = b.disk->process_kill();
    disk->store(path, *a.disk->load(path));
    const auto rescue = DatabaseRescue::open(disk, branch_keys());
    ASSERT_TRUE(rescue) << rescue.error().message;
    EXPECT_FALSE((*rescue)->damage().empty());
    EXPECT_TRUE((*rescue)->may_have_lost_groups());
    EXPECT_TRUE((*rescue)->has_manifest());
    for (const Table table : {Table::inodes, Table::dentries, Table::xattrs}) {
      ASSERT_TRUE((*rescue)->scan(table, [&](const RescuedRow& row) -> Result<void> {
        ++count;
        EXPECT_FALSE(row.value && row.value->starts_with('a')) << path << ": " << *row.value;
        return {};
      }));
    }
  }
  EXPECT_GT(count, 0u);
}

// A table of another branch in the place of one with the same number, whole and with its end
// damaged, where RocksDB notes which database made it.
TEST(DatabaseBranches, give_no_rows_of_another_branchs_table_to_a_repair) {
  Branch base{.disk = MemoryBacking::create(), .states = {}};
  {
    BranchWriter writer(base, "base", true);
    writer.put(Table::inodes, 0);
    writer.close();
  }
  Branch a{.disk = base.disk->process_kill(), .states = base.states};
  Branch b{.disk = base.disk->process_kill(), .states = base.states};
  {
    BranchWriter writer_a(a, "a");
    BranchWriter writer_b(b, "b");
    write_branch(writer_a);
    write_branch(writer_b);
    writer_a.close();
    writer_b.close();
  }
  unsigned count = 0;
  for (const std::string& path : branch_files(a, b)) {
    if (!path.ends_with(".sst") || !a.disk->load(path) || !b.disk->load(path)) continue;
    const Bytes foreign = *a.disk->load(path);
    if (foreign == *b.disk->load(path)) continue;  // from before they parted
    for (const bool is_damaged : {false, true}) {
      Bytes bytes = foreign;
      if (is_damaged) bytes[bytes.size() - 200] ^= Byte{1};
      const Disk disk = b.disk->process_kill();
      disk->store(path, bytes);
      EXPECT_FALSE(branch_rows(disk, true)) << path;
      const auto rescue = DatabaseRescue::open(disk, branch_keys());
      ASSERT_TRUE(rescue) << rescue.error().message;
      ASSERT_FALSE((*rescue)->damage().empty());
      EXPECT_TRUE((*rescue)->has_manifest());
      EXPECT_FALSE((*rescue)->lost_rows().empty());
      const auto& damage = (*rescue)->damage();
      EXPECT_TRUE(std::any_of(damage.begin(), damage.end(), [&](const Error& error) {
        return error.code == ErrorCode::tampered && error.message.find(path) != std::string::npos &&
               error.message.find("another branch") != std::string::npos;
      })) << damage.front().message;
      for (const Table table : {Table::inodes, Table::dentries, Table::xattrs}) {
        ASSERT_TRUE((*rescue)->scan(table, [&](const RescuedRow& row) -> Result<void> {
          EXPECT_FALSE(row.value && row.value->starts_with('a')) << path << ": " << *row.value;
          return {};
        }));
      }
      ++count;
    }
  }
  EXPECT_GT(count, 3u);
}

// An attacker changes the folder while it is being opened: after the check of the chain, and before
// RocksDB reads the files by their names.
TEST(DatabaseBranches, do_not_mix_where_files_change_while_the_database_is_opened) {
  Branch base{.disk = MemoryBacking::create(), .states = {}};
  {
    BranchWriter writer(base, "base", true);
    writer.put(Table::inodes, 0);
    writer.close();
  }
  Branch a{.disk = base.disk->process_kill(), .states = base.states};
  Branch b{.disk = base.disk->process_kill(), .states = base.states};
  BranchWriter writer_a(a, "a");
  BranchWriter writer_b(b, "b");
  write_branch(writer_a);
  write_branch(writer_b);
  for (const std::string& swapped : branch_files(a, b)) {
    if (!a.disk->load(swapped)) continue;
    for (const bool read_only : {true, false}) {
      const Disk disk = b.disk->process_kill();
      enum { before, checked, done } state = before;
      disk->watch([&](std::uint32_t operation, std::string_view path) {
        if (operation != operation_read) return;
        if (state == before && path.find("MANIFEST-") != path.npos) state = checked;
        if (state == checked && path == "db/CURRENT") {  // RocksDB begins with it
          state = done;
          disk->store(swapped, *a.disk->load(swapped));
        }
      });
      const auto content = branch_rows(disk, read_only);
      disk->watch({});
      ASSERT_EQ(state, done);
      if (content) {
        EXPECT_TRUE(holds(b.states, *content)) << "a state that never was: " << swapped;
      } else {
        // If a table was exchanged, RocksDB itself notices it, and calls it corrupt.
        const bool is_table = parse_file_name(swapped).file_class == FileClass::table;
        const auto wanted = is_table || content.error().code == ErrorCode::corrupt
                                ? ErrorCode::corrupt
                                : ErrorCode::tampered;
        EXPECT_EQ(to_string(content.error().code), to_string(wanted))
            << swapped << ": " << content.error().message;
      }
    }
  }
}

// The log of a closed database holds no rows: both branches begin with it.
TEST(DatabaseBranches, of_a_closed_database_never_mix) {
  Branch base{.disk = MemoryBacking::create(), .states = {}};
  {
    BranchWriter writer(base, "base", true);
    writer.put(Table::inodes, 0);
    writer.put(Table::dentries, 0);
    writer.close();
  }
  Branch a{.disk = base.disk->process_kill(), .states = base.states};
  Branch b{.disk = base.disk->process_kill(), .states = base.states};
  BranchWriter writer_a(a, "a");
  BranchWriter writer_b(b, "b");
  write_branch(writer_a);
  write_branch(writer_b);
  expect_no_mixture(a, b);
}

// The process of the database was killed, and each copy was opened.
TEST(DatabaseBranches, of_a_killed_database_never_mix) {
  Branch base{.disk = MemoryBacking::create(), .states = {}};
  BranchWriter writer(base, "base", true);
  writer.put(Table::inodes, 0);
  writer.put(Table::dentries, 0);
  Branch a{.disk = base.disk->process_kill(), .states = base.states};
  Branch b{.disk = base.disk->process_kill(), .states = base.states};
  BranchWriter writer_a(a, "a");
  BranchWriter writer_b(b, "b");
  write_branch(writer_a);
  write_branch(writer_b);
  expect_no_mixture(a, b);
}

// A copy is opened while the original database goes on. Both have the log and the manifest of the
// moment of copying, and the original has gone on with these very files.
TEST(DatabaseBranches, of_a_database_that_went_on_never_mix_with_its_copy) {
  Branch a{.disk = MemoryBacking::create(), .states = {}};
  BranchWriter writer_a(a, "base", true);
  writer_a.put(Table::inodes, 0);
  writer_a.put(Table::dentries, 0);
  Branch b{.disk = a.disk->process_kill(), .states = a.states};
  writer_a.put(Table::inodes, 9);  // to the log that the copy has as well
  BranchWriter writer_b(b, "b");
  write_branch(writer_b);
  expect_no_mixture(a, b);
  writer_a.put(Table::dentries, 9);
  writer_a.flush();
  writer_a.put(Table::xattrs, 9);
  expect_no_mixture(a, b);
  expect_no_mixture(b, a);
}

// CURRENT, and every other file with a fixed name, opens under no other name.
TEST(DatabaseBranches, small_files_are_bound_to_their_names) {
  Branch base{.disk = MemoryBacking::create(), .states = {}};
  {
    BranchWriter writer(base, "base", true);
    writer.put(Table::inodes, 0);
    writer.close();
  }
  base.disk->store("db/CURRENT", base.disk->load("db/IDENTITY").value());
  const auto content = branch_rows(base.disk, true);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ErrorCode::tampered) << content.error().message;
}

}  // namespace
}  // namespace nacre::tests
