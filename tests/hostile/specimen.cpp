// SPDX-License-Identifier: Apache-2.0
#include "tests/hostile/specimen.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fs/backup/backup.h"
#include "fs/check/record_index.h"
#include "fs/repair/repair_plan.h"
#include "fs/rotation/rotation.h"
#include "metadata/keys/keyring_keeper.h"
#include "metadata/keys/keyring_recipients.h"
#include "tests/fs/store_fixture.h"
#include "tests/metadata/test_keys.h"
#include "tests/support/format_under_test.h"
#include "tests/support/noise.h"

namespace nacre::tests {

using fs::InodeNumber;
using metadata::VolumeSecret;

namespace {

constexpr std::uint32_t specimen_chunk_size = 4u << 10;
constexpr InodeNumber root = metadata::root_inode;

std::shared_ptr<MemoryBacking> format() {
  auto backing = MemoryBacking::create();
  const auto made = metadata::create_volume_files(
      *backing,
      {.label = "specimen", .chunk_size_bytes = specimen_chunk_size, .format = format_under_test()},
      recipients(public_key(0, "zero"), passphrase("words", "said")));
  NACRE_EXPECT_OK(made);
  NACRE_EXPECT_OK(fs::Mounted::format(backing, made->keys, 1, {.uid = 1000, .gid = 100}));
  NACRE_EXPECT_OK(metadata::complete_volume_files(*backing, *made));
  return backing;
}

// Makes changes in a mounted specimen, by path below the root.
class Work {
 public:
  explicit Work(fs::Volume& volume) : volume_(volume) {}

  InodeNumber directory(InodeNumber parent, std::string_view name) {
    return inode_of(volume_.make_directory(parent, name, {}, 0755));
  }
  InodeNumber file(InodeNumber parent, std::string_view name, std::string_view content) {
    const auto inode = inode_of(volume_.make_node(parent, name, {}, S_IFREG | 0644, 0));
    write(inode, 0, content);
    return inode;
  }
  InodeNumber find(InodeNumber parent, std::string_view name) {
    return inode_of(volume_.lookup(parent, name));
  }
  void write(InodeNumber inode, std::uint64_t offset, std::string_view content) {
    NACRE_EXPECT_OK(volume_.write(inode, offset, as_bytes(content), {}));
  }
  void sync() { NACRE_EXPECT_OK(volume_.sync_all()); }

 private:
  static InodeNumber inode_of(const Result<fs::Attributes>& made) {
    NACRE_EXPECT_OK(made);
    return made ? made->inode : InodeNumber{};
  }
  fs::Volume& volume_;
};

void fill(fs::Volume& volume) {
  Work work(volume);
  const auto folder = work.directory(root, "folder");
  const auto inner = work.directory(folder, "inner");
  const auto small = work.file(folder, "small", "a few bytes");
  const auto large = work.file(inner, "large", noise(7 * specimen_chunk_size + 100, 1));
  work.file(inner, "text", std::string(6 * specimen_chunk_size, 'x'));
  const auto sparse = work.file(root, "sparse", "");
  work.write(sparse, 10 * specimen_chunk_size, noise(specimen_chunk_size, 2));
  work.file(root, "to be removed", noise(3 * specimen_chunk_size, 3));
  NACRE_EXPECT_OK(volume.link(small, root, "second name"));
  NACRE_EXPECT_OK(volume.make_symlink(root, "link", {}, "folder/small"));
  NACRE_EXPECT_OK(volume.set_xattr(small, "user.note", "noted", fs::XattrMode::set, false));
  work.sync();
  work.write(large, specimen_chunk_size + 10, "inlined bytes");
  work.sync();
}

void change(fs::Volume& volume) {
  Work work(volume);
  const auto folder = work.find(root, "folder");
  const auto large = work.find(work.find(folder, "inner"), "large");
  work.write(large, 2 * specimen_chunk_size, noise(2 * specimen_chunk_size, 4));
  work.write(large, 5 * specimen_chunk_size + 7, noise(3000, 5));  // a patch
  work.sync();
  NACRE_EXPECT_OK(volume.unlink(root, "to be removed"));
  for (unsigned i = 0; i < 12; ++i)
    work.file(folder, fmt::format("file {}", i), noise(i * 500, 10 + i));
  work.sync();
  work.write(work.find(root, "sparse"), 100, "in a hole");
  work.sync();
}

void with_volume(const std::shared_ptr<MemoryBacking>& backing,
                 const std::function<void(fs::Volume&, fs::Mounted&)>& work) {
  const auto keys = open_specimen_keys(*backing);
  NACRE_ASSERT_OK(keys);
  auto volume = open_specimen(backing, *keys);
  NACRE_ASSERT_OK(volume);
  work(**volume, volume->mounted());
  NACRE_EXPECT_OK(volume->mounted().close());
}

ObservedTree tree_of(const std::shared_ptr<MemoryBacking>& backing) {
  ObservedTree tree;
  with_volume(backing->process_kill(), [&](fs::Volume& volume, fs::Mounted&) {
    tree = observe(volume, specimen_chunk_size);
    EXPECT_TRUE(tree.codes.empty());
  });
  return tree;
}

void add_recipient(const std::shared_ptr<MemoryBacking>& backing) {
  const auto keys = open_specimen_keys(*backing);
  NACRE_ASSERT_OK(keys);
  const auto next = metadata::add_recipient(keys->keyring, *keys->access, public_key(1, "one"));
  NACRE_ASSERT_OK(next);
  auto volume = open_specimen(backing, *keys);
  NACRE_ASSERT_OK(volume);
  metadata::KeyringKeeper keeper(backing, keys->keys, keys->keyring, [&](std::uint64_t generation) {
    return volume->mounted().note_keyring_generation(generation);
  });
  NACRE_EXPECT_OK(keeper.replace(*next));
  NACRE_EXPECT_OK(volume->mounted().close());
}

std::string save_plan(MemoryBacking& backing) {
  const auto keys = open_specimen_keys(backing);
  NACRE_EXPECT_OK(keys);
  fs::RepairPlan plan{.volume_id = keys->keys->volume_id(), .created = "2026-01-31T23:59:59Z"};
  plan.steps.push_back({.change = fs::RowEdit{.key = "key", .before = {}, .after = "value"},
                        .why = "a row was missing",
                        .inode = {},
                        .paths = {"/folder"}});
  const auto name = fs::save_plan(backing, *keys->keys, plan);
  NACRE_EXPECT_OK(name);
  return name.value_or("");
}

Specimen make_killed(const std::shared_ptr<MemoryBacking>& closed, const ObservedTree& tree) {
  Specimen killed{.name = "killed", .backing = nullptr, .trees = {tree}};
  const auto backing = closed->process_kill();
  const auto keys = open_specimen_keys(*backing);
  NACRE_EXPECT_OK(keys);
  auto volume = open_specimen(backing, *keys);
  NACRE_EXPECT_OK(volume);
  Work work(**volume);
  for (unsigned i = 0; i < 4; ++i) {
    const auto file = work.file(root, fmt::format("new {}", i), noise(200 + i * 3000, 50 + i));
    work.write(work.find(root, "second name"), i, "again");
    NACRE_EXPECT_OK(
        (*volume)->set_xattr(file, "user.number", std::to_string(i), fs::XattrMode::set, false));
    work.sync();
    killed.trees.push_back(tree_of(backing));
  }
  killed.backing = backing->process_kill();
  backing->stop();
  return killed;
}

bool holds_file(const MemoryBacking& backing, std::string_view part) {
  const auto files = backing.files();
  return std::any_of(files.begin(), files.end(),
                     [&](const std::string& path) { return path.find(part) != std::string::npos; });
}

// Makes a second backup to the same place, cut off when everything is there except the last names.
Specimen make_arriving(const std::shared_ptr<MemoryBacking>& closed) {
  Specimen arriving{.name = "arriving", .backing = nullptr, .trees = {}};
  const auto source = closed->process_kill();
  const auto target = MemoryBacking::create();
  with_volume(source, [&](fs::Volume& volume, fs::Mounted& mounted) {
    const auto back_up = [&](MemoryBacking& to) -> Result<> {
      NACRE_ASSIGN(auto snapshot, mounted.begin_backup());
      NACRE_TRY(fs::back_up(*source, {.snapshot = std::move(snapshot)}, to, {}, {}));
      return {};
    };
    NACRE_ASSERT_OK(back_up(*target));
    Work(volume).file(root, "since the first", noise(3 * specimen_chunk_size, 70));
    NACRE_ASSERT_OK(back_up(*target->process_kill()));
    for (std::uint64_t change = 1;; ++change) {
      const auto cut = target->process_kill();
      cut->fail_at(change);
      if (back_up(*cut)) break;
      auto left = cut->power_loss(0);
      if (holds_file(*left, ".log.new") && holds_file(*left, ".seg.new")) {
        arriving.backing = std::move(left);
      }
    }
  });
  EXPECT_TRUE(arriving.backing);
  arriving.trees = {tree_of(arriving.backing)};
  EXPECT_TRUE(arriving.trees[0].facts.contains("/since the first|attributes"));
  return arriving;
}

// A rotation of keys to format 2 that ended before its end. watch sees each change that it makes,
// and go_on is asked as it goes on.
void move_in_part(const std::shared_ptr<MemoryBacking>& backing, MemoryBacking::Watcher watch,
                  const std::function<bool(const fs::RotationStatus&)>& go_on) {
  const auto keys = open_specimen_keys(*backing);
  NACRE_ASSERT_OK(keys);
  auto volume = open_specimen(backing, *keys);
  NACRE_ASSERT_OK(volume);
  metadata::KeyringKeeper keeper(backing, keys->keys, keys->keyring, [&](std::uint64_t generation) {
    return volume->mounted().note_keyring_generation(generation);
  });
  fs::Rotation rotation(backing, keys->keys, keeper, volume->mounted());
  backing->watch(std::move(watch));
  NACRE_ASSERT_OK(rotation.begin({.rate_bytes_per_second = 1u << 20, .to_format_2 = true}));
  backing->watch({});
  const auto rotated = rotation.run([&](const fs::RotationStatus& status) {
    if (!go_on(status)) rotation.stop();
  });
  EXPECT_FALSE(rotated);
  NACRE_EXPECT_OK(volume->mounted().close());
}

// The volume has enough segments for the move to be cut off between two of them.
Specimen make_moving(const std::shared_ptr<MemoryBacking>& closed) {
  Specimen moving{.name = "moving", .backing = closed->process_kill(), .trees = {}};
  move_in_part(moving.backing, {}, [](const fs::RotationStatus& status) {
    return status.done_bytes == 0 || status.done_bytes >= status.total_bytes;
  });
  moving.trees = {tree_of(moving.backing)};
  const auto keys = open_specimen_keys(*moving.backing);
  NACRE_EXPECT_OK(keys);
  EXPECT_EQ(keys->keyring.epochs.size(), 2u);
  std::set<std::uint32_t> epochs;
  for (const auto& [path, records] : named_records(moving.backing->process_kill(), *keys)) {
    const auto bytes = moving.backing->load(path);
    epochs.insert(metadata::decode_segment_header(ByteView(*bytes)).value().epoch);
  }
  EXPECT_EQ(epochs.size(), 2u);  // some are sealed anew, some are not
  return moving;
}

Specimen make_switching(const std::shared_ptr<MemoryBacking>& closed, const ObservedTree& tree) {
  Specimen switching{.name = "switching", .backing = nullptr, .trees = {tree}};
  const auto source = closed->process_kill();
  unsigned named_count = 0;
  move_in_part(
      source,
      [&](std::uint32_t operation, std::string_view path) {
        if (operation != change_rename || path.find("rekey-") == std::string_view::npos) return;
        if (++named_count == 3) switching.backing = source->process_kill();
      },
      [](const fs::RotationStatus&) { return false; });
  EXPECT_GT(named_count, 4u);
  return switching;
}

Specimens make_specimens() {
  Specimens made;
  const auto backing = format();
  with_volume(backing, [](fs::Volume& volume, fs::Mounted&) { fill(volume); });
  made.early = backing->process_kill();
  add_recipient(backing);
  with_volume(backing, [](fs::Volume& volume, fs::Mounted&) { change(volume); });
  made.plan_name = save_plan(*backing);
  made.closed = {.name = "closed", .backing = backing, .trees = {tree_of(backing)}};
  made.killed = make_killed(backing, made.closed.trees.back());
  made.arriving = make_arriving(backing);
  made.moving = make_moving(backing);
  made.switching = make_switching(backing, made.closed.trees.back());
  made.other = format();
  with_volume(made.other, [](fs::Volume& volume, fs::Mounted&) { fill(volume); });
  add_recipient(made.other);
  with_volume(made.other, [](fs::Volume& volume, fs::Mounted&) { change(volume); });
  return made;
}

}  // namespace

const Specimens& specimens() {
  static const Specimens made = make_specimens();
  return made;
}

fs::VolumeOptions specimen_options() {
  fs::VolumeOptions options;
  options.commit_interval_ms = 3'600'000;  // commits happen only on request
  options.inline_commit_bytes_max = 2u << 10;
  options.dirty_budget_bytes = 4u << 20;
  options.cache_budget_bytes = 1u << 20;
  options.background_compaction = false;
  options.store.segment_size_bytes = 16u << 10;
  options.store.chunk_size_bytes = specimen_chunk_size;
  return options;
}

Result<metadata::VolumeKeys> open_specimen_keys(MemoryBacking& backing) {
  static const VolumeSecret secret(identity(0));
  return metadata::open_volume_keys(backing, secret);
}

std::map<std::string, std::map<std::uint64_t, std::uint64_t>> named_records(
    const std::shared_ptr<MemoryBacking>& backing, const metadata::VolumeKeys& keys) {
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> named;
  const auto database = metadata::Database::open(backing, keys.keys, {.read_only = true});
  NACRE_EXPECT_OK(database);
  if (!database) return named;
  NACRE_EXPECT_OK(fs::scan_records(**database, [&](const fs::NamedRecord& record) {
    const auto& location = record.location;
    const auto path = fmt::format("segments/{:012}.seg", location.segment.value);
    named[path][location.offset] = location.stored_size;
  }));
  return named;
}

Result<OpenVolume> open_specimen(const std::shared_ptr<MemoryBacking>& backing,
                                 const metadata::VolumeKeys& keys, bool read_only) {
  NACRE_ASSIGN(auto engine, engine::Engine::create({.thread_count = 1}));
  fs::VolumeOptions options = specimen_options();
  options.read_only = read_only;
  return fs::Mounted::open(backing, keys.keys, keys.keyring.generation, std::move(engine), options);
}

}  // namespace nacre::tests
