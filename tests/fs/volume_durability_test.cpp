// SPDX-License-Identifier: Apache-2.0
// What survives a sync, a power loss, or a mount that ended without closing, and what a volume then
// refuses. The crash tests cut power everywhere. Here each promise is shown once.
#include "tests/fs/volume_fixture.h"

#include <atomic>
#include <deque>
#include <mutex>

#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;
using fs::RenameMode;
using metadata::Table;

class VolumeDurability : public VolumeTest {};

TEST_F(VolumeDurability, a_synced_file_survives_with_its_path) {
  const InodeNumber directory = make_directory(root, "d");
  const InodeNumber file = make_file(directory, "f", 0600);
  NACRE_EXPECT_OK(volume().set_xattr(file, "user.x", "v", fs::XattrMode::set, false));
  for (const std::size_t size : {10u, 100'000u}) {  // in the WriteBatch, and in a segment
    const std::string content(size, 'x');
    write(file, 0, content);
    NACRE_EXPECT_OK(sync(file));
    lose_power();
    EXPECT_EQ(read(find(find(root, "d"), "f")), content);
    EXPECT_EQ(stat(file).mode, S_IFREG | 0600u);
    EXPECT_EQ(volume().get_xattr(file, "user.x").value_or(""), "v");
  }
}

TEST_F(VolumeDurability, a_synced_directory_keeps_its_names) {
  const InodeNumber directory = make_directory(root, "d");
  make_file(directory, "f");
  NACRE_EXPECT_OK(sync(directory));
  lose_power();
  EXPECT_EQ(list(find(root, "d")), std::vector<std::string>{"f"});
}

TEST_F(VolumeDurability, what_was_not_synced_is_lost_as_a_whole) {
  make_file(root, "kept");
  NACRE_EXPECT_OK(volume().sync_all());
  write(make_file(root, "lost"), 0, "x");
  NACRE_EXPECT_OK(volume().unlink(root, "kept"));
  lose_power();
  EXPECT_EQ(list(root), std::vector<std::string>{"kept"});
  EXPECT_EQ(stat(root).size, 1u);
}

TEST_F(VolumeDurability, nothing_is_committed_when_nothing_changed) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "x");
  NACRE_EXPECT_OK(sync(file));
  const auto commits = mounted().stats().database.commit_count;
  const auto requests = mounted().stats().commits.request_count;
  for (int i = 0; i < 10; ++i) {
    NACRE_EXPECT_OK(sync(file));
    NACRE_EXPECT_OK(sync(root));
  }
  EXPECT_EQ(mounted().stats().database.commit_count, commits);
  EXPECT_EQ(mounted().stats().commits.request_count, requests);
  write(file, 0, "y");
  NACRE_EXPECT_OK(sync(file));
  EXPECT_GT(mounted().stats().database.commit_count, commits);
  lose_power();
  EXPECT_EQ(read(find(root, "f")), "y");
}

TEST_F(VolumeDurability, a_file_renamed_over_another_is_old_or_new) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "old");
  NACRE_EXPECT_OK(volume().sync_all());
  const InodeNumber fresh = make_file(root, "f.new");
  write(fresh, 0, std::string(100'000, 'n'));
  NACRE_EXPECT_OK(volume().rename(root, "f.new", root, "f", RenameMode::replace));
  // A commit that another file asked for also commits the rename, and so the data of f.
  NACRE_EXPECT_OK(sync(make_file(root, "other")));
  lose_power();
  EXPECT_EQ(read(find(root, "f")), std::string(100'000, 'n'));
}

// Holds a file's content until it is asked for it, as the kernel's page cache does.
class LateWriter final : public fs::KernelCache {
 public:
  explicit LateWriter(fs::Volume& volume) : volume_(volume) {}
  void hold(InodeNumber inode, std::string content) { held_[inode] = std::move(content); }
  void write_out(InodeNumber inode) override {
    ++calls;
    const auto found = held_.find(inode);
    if (found == held_.end()) return;
    // The write comes on another thread, as the kernel's does.
    std::thread([&] {
      NACRE_EXPECT_OK(volume_.write(inode, 0, as_bytes(found->second), {}));
    }).join();
    held_.erase(found);
  }
  std::atomic<int> calls{0};

 private:
  fs::Volume& volume_;
  std::map<InodeNumber, std::string> held_;
};

TEST_F(VolumeDurability, the_kernel_hands_over_what_a_rename_or_link_moved) {
  LateWriter kernel(volume());
  mounted().kernel_cache().set(&kernel);
  const InodeNumber renamed = make_file(root, "f.new");
  const InodeNumber linked = make_file(root, "g.new");
  const InodeNumber exchanged = make_file(root, "h.new");
  make_file(root, "h");
  const InodeNumber unmoved = make_file(root, "unmoved");
  for (const InodeNumber inode : {renamed, linked, exchanged, unmoved})
    kernel.hold(inode, "late");
  NACRE_EXPECT_OK(volume().rename(root, "f.new", root, "f", RenameMode::replace));
  NACRE_EXPECT_OK(volume().rename(root, "h.new", root, "h", RenameMode::exchange));
  NACRE_ASSERT_OK(volume().link(linked, root, "g"));
  NACRE_EXPECT_OK(sync(root));
  mounted().kernel_cache().set(nullptr);
  EXPECT_GE(kernel.calls, 4);
  lose_power();
  EXPECT_EQ(read(find(root, "f")), "late");
  EXPECT_EQ(read(find(root, "g")), "late");
  EXPECT_EQ(read(find(root, "h")), "late");
  EXPECT_EQ(read(find(root, "unmoved")), "");
}

// Renames never end, so a commit holds them back. Then the threads that serve the kernel wait as
// well.
TEST_F(VolumeDurability, a_storm_of_renames_neither_stops_commits_nor_waits_for_itself) {
  // One thread serves everything, as with a busy mount: renames, and what write_out() asks for.
  std::mutex mutex;
  std::deque<std::function<void()>> late;
  bool stop = false;
  std::atomic<int> renames{0};
  class Asking final : public fs::KernelCache {
   public:
    explicit Asking(std::function<void(InodeNumber)> ask) : ask_(std::move(ask)) {}
    void write_out(InodeNumber inode) override { ask_(inode); }

   private:
    std::function<void(InodeNumber)> ask_;
  };
  Asking kernel([&](InodeNumber inode) {
    std::promise<void> written;
    {
      std::lock_guard lock(mutex);
      late.push_back([&, inode] {
        NACRE_EXPECT_OK(volume().write(inode, 0, as_bytes("late"), {}));
        written.set_value();
      });
    }
    written.get_future().wait();
    // A rename during each flush: so the commit must hold renames back in the end.
    const int before = renames;
    while (renames == before)
      std::this_thread::yield();
  });
  mounted().kernel_cache().set(&kernel);
  const InodeNumber file = make_file(root, "0");
  std::thread server([&] {
    std::string name = "0", other = "1";
    while (true) {
      std::unique_lock lock(mutex);
      if (stop && late.empty()) return;
      if (!late.empty()) {
        const auto write_late = std::move(late.front());
        late.pop_front();
        lock.unlock();
        write_late();
      } else {
        lock.unlock();
        NACRE_EXPECT_OK(volume().rename(root, name, root, other, RenameMode::replace));
        name.swap(other);
        ++renames;
      }
    }
  });
  while (renames == 0)
    std::this_thread::yield();
  for (int i = 0; i < 20; ++i)
    NACRE_EXPECT_OK(volume().sync_all());
  {
    std::lock_guard lock(mutex);
    stop = true;
  }
  server.join();
  mounted().kernel_cache().set(nullptr);
  lose_power();
  const auto names = list(root);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(find(root, names.front()), file);
  EXPECT_EQ(read(file), "late");
}

TEST_F(VolumeDurability, an_open_deleted_file_is_removed_by_the_next_mount) {
  options_.checkpoints.interval_ms = 0;  // from the mount after the power loss on
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(volume().set_xattr(file, "user.x", "v", fs::XattrMode::set, false));
  write(file, 0, std::string(100'000, 'x'));
  const InodeNumber directory = make_directory(root, "d");
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  NACRE_EXPECT_OK(volume().remove_directory(root, "d"));
  write(file, 0, "still written to");
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();
  EXPECT_CODE(stale, volume().lookup_inode(file));
  EXPECT_CODE(stale, volume().lookup_inode(directory));
  EXPECT_EQ(mounted().stats().inode_count, 1u);
  unmount();
  for (const auto& [table, count] : count_rows()) {
    EXPECT_EQ(count, table == Table::inodes ? 1u : 0u) << to_string(table);
  }
  mount();
  EXPECT_EQ(mounted().stats().segments.live_bytes, 0u);
}

TEST_F(VolumeDurability, a_clean_unmount_leaves_no_orphans) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "x");
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  unmount();  // though the kernel never forgot it
  for (const auto& [table, count] : count_rows()) {
    EXPECT_EQ(count, table == Table::inodes ? 1u : 0u) << to_string(table);
  }
  mount();
}

TEST_F(VolumeDurability, changes_are_committed_by_and_by) {
  unmount();
  options_.commit_interval_ms = 20;
  mount();
  write(make_file(root, "f"), 0, "x");
  const auto before = mounted().stats().commits.commit_count;
  while (mounted().stats().commits.commit_count < before + 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    make_file(root, "g" + std::to_string(mounted().stats().inode_count));
  }
  lose_power();
  EXPECT_EQ(read(find(root, "f")), "x");
}

TEST_F(VolumeDurability, the_intervals_commit_comes_though_another_file_was_synced) {
  unmount();
  options_.commit_interval_ms = 500;
  mount();
  const InodeNumber file = make_file(root, "f");
  const InodeNumber other = make_file(root, "other");
  NACRE_EXPECT_OK(volume().sync_all());
  write(file, 0, std::string(100'000, 'x'));
  write(other, 0, "y");
  NACRE_EXPECT_OK(sync(other));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (mounted().stats().dirty_bytes > 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(mounted().stats().dirty_bytes, 0u);
}

TEST_F(VolumeDurability, an_older_keyring_is_refused_and_a_newer_one_remembered) {
  unmount();
  auto volume = open(3);
  NACRE_ASSERT_OK(volume);
  NACRE_EXPECT_OK(volume->mounted().close());
  volume->reset();
  EXPECT_CODE(rolled_back, open(2));
  volume = open(3);
  NACRE_ASSERT_OK(volume);
  volume_ = std::move(*volume);
}

TEST_F(VolumeDurability, a_read_only_volume_reads_and_writes_nothing) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "content");
  NACRE_EXPECT_OK(volume().set_xattr(file, "user.x", "v", fs::XattrMode::set, false));
  NACRE_EXPECT_OK(volume().sync_all());
  // Left without closing, with an orphan and a change that no commit saw.
  const InodeNumber orphan = make_file(root, "orphan");
  NACRE_EXPECT_OK(volume().unlink(root, "orphan"));
  NACRE_EXPECT_OK(volume().sync_all());
  backing_ = backing_->power_loss(0);
  backing_->set_read_only(true);
  options_.read_only = true;
  volume_.reset();
  mount();
  const auto changes = backing_->change_count();
  EXPECT_EQ(read(find(root, "f")), "content");
  EXPECT_EQ(list(root), std::vector<std::string>{"f"});
  EXPECT_EQ(volume().get_xattr(file, "user.x").value_or(""), "v");
  EXPECT_CODE(read_only, volume().write(file, 0, as_bytes("x"), {}));
  EXPECT_CODE(read_only, volume().make_node(root, "g", caller_, S_IFREG, 0));
  EXPECT_CODE(read_only, volume().make_directory(root, "g", caller_, 0));
  EXPECT_CODE(read_only, volume().make_symlink(root, "g", caller_, "x"));
  EXPECT_CODE(read_only, volume().make_unnamed(root, caller_, 0));
  EXPECT_CODE(read_only, volume().link(file, root, "g"));
  EXPECT_CODE(read_only, volume().unlink(root, "f"));
  EXPECT_CODE(read_only, volume().remove_directory(root, "f"));
  EXPECT_CODE(read_only, volume().rename(root, "f", root, "g", RenameMode::replace));
  EXPECT_CODE(read_only, volume().change_attributes(file, {.mode = 0}));
  EXPECT_CODE(read_only, volume().set_flags(file, 1));
  EXPECT_CODE(read_only, volume().set_xattr(file, "user.x", "", fs::XattrMode::set, false));
  EXPECT_CODE(read_only, volume().remove_xattr(file, "user.x"));
  EXPECT_CODE(read_only, volume().allocate(file, fs::AllocateMode::allocate, 0, 1));
  EXPECT_CODE(read_only, volume().copy_range(file, 0, file, 10, 1));
  NACRE_EXPECT_OK(sync(file));
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(backing_->change_count(), changes);
  unmount();
  EXPECT_EQ(backing_->change_count(), changes);
  backing_->set_read_only(false);
  options_.read_only = false;
  mount();
  EXPECT_CODE(stale, volume().lookup_inode(orphan));
}

TEST_F(VolumeDurability, a_volume_whose_commit_failed_refuses_changes_and_still_reads) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "durable");
  NACRE_EXPECT_OK(volume().sync_all());
  write(file, 0, "changed");
  backing_->inject({.operations = change_sync, .code = ErrorCode::io});
  EXPECT_CODE(io, sync(file));
  EXPECT_CODE(io, sync(file));  // for good
  backing_->clear_failures();
  EXPECT_CODE(io, sync(file));
  EXPECT_CODE(read_only, volume().write(file, 0, as_bytes("x"), {}));
  EXPECT_CODE(read_only, volume().make_node(root, "g", caller_, S_IFREG, 0));
  EXPECT_EQ(read(file), "changed");
  EXPECT_NE(mounted().stats().health, "ok");
  EXPECT_FALSE(mounted().close());
  lose_power();
  EXPECT_EQ(read(find(root, "f")), "durable");
}

// The bytes of a failed sync may be lost even if a later sync succeeds. So no later sync succeeds.
TEST_F(VolumeDurability, a_failed_sync_is_told_to_every_holder_and_never_tried_again) {
  const InodeNumber first = make_file(root, "first");
  const InodeNumber second = make_file(root, "second");
  const InodeNumber clean = make_file(root, "clean");
  NACRE_EXPECT_OK(volume().sync_all());
  write(first, 0, std::string(100'000, 'a'));
  write(second, 0, std::string(100'000, 'b'));
  backing_->inject({.operations = change_sync, .count = 1, .code = ErrorCode::io});
  EXPECT_CODE(io, sync(first));
  const auto changes = backing_->change_count();
  for (int i = 0; i < 2; ++i) {  // the disk works again, but is not asked
    for (const InodeNumber inode : {first, second, clean, root})
      EXPECT_CODE(io, sync(inode));
    EXPECT_CODE(io, volume().sync_all());
  }
  EXPECT_CODE(read_only, volume().unlink(root, "clean"));
  EXPECT_EQ(backing_->change_count(), changes);
  EXPECT_EQ(read(second), std::string(100'000, 'b'));
  EXPECT_FALSE(mounted().close());
  lose_power();
  NACRE_EXPECT_OK(sync(find(root, "clean")));
}

// A network directory, or a thinly provisioned disk, notices only at the sync that it is full. Then
// it is unknown which bytes the system still holds.
TEST_F(VolumeDurability, a_sync_that_finds_no_space_is_final_and_takes_nothing_that_was_durable) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, "durable");
  NACRE_EXPECT_OK(volume().sync_all());
  write(file, 0, std::string(100'000, 'a'));
  backing_->inject({.operations = change_sync, .count = 1, .code = ErrorCode::no_space});
  EXPECT_CODE(no_space, sync(file));
  EXPECT_FALSE(sync(file));
  EXPECT_CODE(read_only, volume().write(file, 0, as_bytes("x"), {}));
  EXPECT_NE(mounted().stats().health, "ok");
  EXPECT_FALSE(mounted().close());
  lose_power();
  EXPECT_EQ(read(find(root, "f")), "durable");
  write(find(root, "f"), 0, "changed");
  NACRE_EXPECT_OK(volume().sync_all());
}

// A network directory whose server lost the file.
TEST_F(VolumeDurability, a_stale_directory_turns_it_read_only_and_does_not_hold_up_closing) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, std::string(100'000, 'a'));
  NACRE_EXPECT_OK(volume().sync_all());
  write(file, 0, std::string(100'000, 'b'));
  backing_->inject({.operations = change_any | operation_read, .code = ErrorCode::stale});
  EXPECT_FALSE(sync(file));
  EXPECT_CODE(read_only, volume().write(file, 0, as_bytes("x"), {}));
  EXPECT_NE(mounted().stats().health, "ok");
  EXPECT_FALSE(mounted().close());
  backing_->clear_failures();
  lose_power();
  EXPECT_EQ(read(find(root, "f")), std::string(100'000, 'a'));
}

TEST_F(VolumeDurability, a_full_medium_is_reported_and_passes) {
  const InodeNumber file = make_file(root, "f");
  const std::string content(200'000, 'x');
  write(file, 0, content);
  backing_->inject({.operations = change_write, .code = ErrorCode::no_space});
  EXPECT_CODE(no_space, sync(file));
  EXPECT_CODE(no_space, volume().sync_all());
  EXPECT_EQ(mounted().stats().health, "ok");
  EXPECT_EQ(read(file), content);
  backing_->clear_failures();
  NACRE_EXPECT_OK(sync(file));
  lose_power();
  EXPECT_EQ(read(find(root, "f")), content);
}

TEST_F(VolumeDurability, a_volume_without_its_first_rows_is_refused) {
  unmount();
  const auto damage = [&](Table table, const std::string& key) {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    const auto old = (*database)->get(table, key).value();
    (*database)->erase(table, key);
    (*database)->freeze();
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
    database->reset();
    EXPECT_CODE(corrupt, open());
    database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    (*database)->put(table, key, *old);
    (*database)->freeze();
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
  };
  damage(Table::inodes, metadata::inode_key(root));
  for (const auto key : {metadata::system_key_name_hash, metadata::system_key_next_inode,
                         metadata::system_key_inode_count, metadata::system_key_keyring}) {
    damage(Table::system, std::string(key));
  }
  mount();
}

// One segment a mount: gone, the files whose chunks lie in it are hit, and no others.
class VolumeWithoutASegment : public VolumeTest {
 protected:
  void SetUp() override {
    options_.checkpoints.interval_ms = 0;  // it would have a segment of its own
    VolumeTest::SetUp();
    write(make_file(root, "hit"), 0, content_);
    unmount();
    const auto names = backing_->list("segments");
    NACRE_ASSERT_OK(names);
    ASSERT_EQ(names->size(), 1u);
    segment_ = "segments/" + names->front();
    mount();
    write(make_file(root, "healthy"), 0, content_);
    unmount();
  }
  void expect_refused_but_healthy_files_read() {
    const auto refused = open();
    ASSERT_FALSE(refused);
    EXPECT_EQ(to_string(refused.error().code), to_string(ErrorCode::missing));
    for (const std::string& word :
         {segment_, std::string("fsck.nacre --deep"), std::string("-o ro")})
      EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;

    options_.read_only = true;
    mount();
    EXPECT_EQ(read(find(root, "healthy")), content_);
    Bytes bytes(content_.size());
    const auto count = volume().read(find(root, "hit"), 0, bytes);
    ASSERT_FALSE(count) << "read " << *count << " bytes that are gone";
    EXPECT_EQ(to_string(count.error().code), to_string(ErrorCode::missing));
    EXPECT_NE(count.error().message.find(segment_), std::string::npos) << count.error().message;
    EXPECT_EQ(stat(find(root, "hit")).size, content_.size());
  }

  const std::string content_ = std::string(100'000, 'x');
  std::string segment_;
};

TEST_F(VolumeWithoutASegment, serves_the_healthy_files_read_only) {
  NACRE_ASSERT_OK(backing_->remove(segment_));
  expect_refused_but_healthy_files_read();
}

TEST_F(VolumeWithoutASegment, or_with_a_short_one_serves_the_healthy_files_read_only) {
  {
    auto file = backing_->open(segment_, metadata::OpenMode::read_write);
    NACRE_ASSERT_OK(file);
    NACRE_ASSERT_OK((*file)->truncate(metadata::segment_header_size_bytes + 10));
  }
  expect_refused_but_healthy_files_read();
}

}  // namespace
}  // namespace nacre::tests
