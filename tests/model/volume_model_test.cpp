// SPDX-License-Identifier: Apache-2.0
// Random operations on a volume and on a plain tree side by side, with remounts, power loss and
// kills between them. Every answer must be the same, and after a crash the volume must be what the
// last commit made durable.
//
// NACRE_MODEL_SEED=n repeats a run, NACRE_MODEL_STEPS=n makes runs longer.
#include <cstdlib>
#include <iostream>
#include <random>

#include <fmt/format.h>

#include "tests/fs/table_checker.h"
#include "tests/model/compared_volume.h"
#include "tests/support/noise.h"

namespace nacre::tests {
namespace {

using fs::AllocateMode;
using fs::InodeNumber;
using fs::RenameMode;

constexpr int steps_between_comparisons = 150;

class VolumeModel : public ComparedVolume {
 protected:
  void SetUp() override {
    options_.store.chunk_size_bytes = 4u << 10;
    // Small segments and a tight bound, so that compaction is always at work.
    options_.store.segment_size_bytes = 32u << 10;
    options_.compaction.bound.space_ratio = 1.05;
    options_.compaction.idle_after = std::chrono::milliseconds(1);
    options_.compaction.inlined_bytes_max = 2u << 10;
    options_.compaction.open_dead_bytes_min = 8u << 10;
    options_.dirty_budget_bytes = 512u << 10;
    options_.inline_commit_bytes_max = 4u << 10;
    ComparedVolume::SetUp();
  }

  void run(std::uint32_t seed) {
    if (const char* given = std::getenv("NACRE_MODEL_SEED")) {
      seed = static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
    }
    int steps = 2000;
    if (const char* given = std::getenv("NACRE_MODEL_STEPS")) steps = std::atoi(given);
    std::cout << "seed " << seed << ", " << steps << " steps\n";
    random_.seed(seed);
    for (int step = 1; step <= steps && !HasFailure(); ++step) {
      SCOPED_TRACE(fmt::format("seed {}, step {}", seed, step));
      do_step();
      if (step % steps_between_comparisons == 0) compare_all();
    }
    if (HasFailure()) return;
    do_remount();
  }

  std::size_t file_size_max_ = 70'000;
  std::size_t noise_size_max_ = 0;  // of a write of bytes that do not compress; 0: none

 private:
  std::size_t pick(std::size_t count) { return random_() % count; }
  bool chance(unsigned one_in) { return random_() % one_in == 0; }
  std::string any_name() {
    const std::size_t number = pick(9);
    return number == 8 ? std::string(255, 'L') : "n" + std::to_string(number);
  }
  ModelNodePtr any_directory() {
    const auto directories = model_.directories();
    return directories[pick(directories.size())];
  }
  // A regular file with a name, or one that is deleted and held; null when there is none.
  ModelNodePtr any_file() {
    auto files = model_.files();
    for (const ModelNodePtr& node : held_) {
      if (node->is_regular()) files.push_back(node);
    }
    return files.empty() ? nullptr : files[pick(files.size())];
  }
  std::string any_text() {
    std::string text(1 + pick(chance(4) ? 20'000 : 300), '\0');
    for (char& c : text)
      c = static_cast<char>('a' + pick(26));
    return text;
  }
  std::string any_content() {
    if (noise_size_max_ == 0 || chance(2)) return any_text();
    const std::size_t size = 1 + pick(noise_size_max_);
    return noise(size, random_());
  }

  // The answers must be the same.
  template <typename T>
  bool same(const Result<T>& got, const Result<>& expected) {
    const auto text = [](const auto& result) {
      return result ? std::string("success") : std::string(to_string(result.error().code));
    };
    EXPECT_EQ(text(got), text(expected)) << (got ? "" : got.error().message);
    return got && expected;
  }

  void do_step() {
    struct Choice {
      unsigned weight;
      void (VolumeModel::*step)();
    };
    static constexpr Choice choices[] = {
        {28, &VolumeModel::make},        {4, &VolumeModel::make_unnamed},
        {8, &VolumeModel::link},         {14, &VolumeModel::remove},
        {18, &VolumeModel::rename},      {40, &VolumeModel::write},
        {10, &VolumeModel::resize},      {10, &VolumeModel::allocate},
        {6, &VolumeModel::copy},         {8, &VolumeModel::change_owner},
        {8, &VolumeModel::change_xattr}, {12, &VolumeModel::read_some},
        {8, &VolumeModel::look_up},      {10, &VolumeModel::forget},
        {8, &VolumeModel::sync_file},    {2, &VolumeModel::sync_everything},
        {2, &VolumeModel::list_some},    {1, &VolumeModel::do_remount},
        {1, &VolumeModel::crash},        {3, &VolumeModel::compact},
    };
    std::size_t sum = 0;
    for (const Choice& choice : choices)
      sum += choice.weight;
    std::size_t number = pick(sum);
    for (const Choice& choice : choices) {
      if (number < choice.weight) return (this->*choice.step)();
      number -= choice.weight;
    }
  }

  ModelNodePtr new_node(const ModelNodePtr& directory, std::uint32_t mode) {
    auto node = std::make_shared<ModelNode>();
    node->mode = S_ISLNK(mode) ? mode : mode & ~caller_.umask;
    node->uid = caller_.uid;
    node->gid = caller_.gid;
    if (directory->mode & S_ISGID) {
      node->gid = directory->gid;
      if (S_ISDIR(mode)) node->mode |= S_ISGID;
    }
    return node;
  }

  void make() {
    const ModelNodePtr directory = any_directory();
    const std::string name = any_name();
    const std::uint32_t bits = static_cast<std::uint32_t>(pick(01000));
    ModelNodePtr node;
    Result<fs::Attributes> made = fail(ErrorCode::io);
    const std::size_t kind = pick(8);
    if (kind < 2) {
      node = new_node(directory, S_IFDIR | bits);
      made = volume().make_directory(directory->inode, name, caller_, bits);
    } else if (kind == 2) {
      node = new_node(directory, S_IFLNK | 0777);
      node->content = any_text().substr(0, metadata::symlink_size_bytes_max);
      made = volume().make_symlink(directory->inode, name, caller_, node->content);
    } else if (kind == 3) {
      node = new_node(directory, S_IFCHR | bits);
      node->rdev = pick(1u << 20);
      made = volume().make_node(directory->inode, name, caller_, S_IFCHR | bits, node->rdev);
    } else {
      node = new_node(directory, S_IFREG | bits);
      made = volume().make_node(directory->inode, name, caller_, S_IFREG | bits, 0);
    }
    if (!same(made, model_.add(directory, name, node))) return;
    node->inode = made->inode;
    count_lookup(*made);
    EXPECT_TRUE(numbers_.insert(made->inode.value).second) << "an inode number used twice";
    compare_attributes(*node, *made);
  }

  void make_unnamed() {
    const ModelNodePtr directory = any_directory();
    const ModelNodePtr node = new_node(directory, S_IFREG | 0640);
    const auto made = volume().make_unnamed(directory->inode, caller_, 0640);
    if (!same(made, Result<>())) return;
    node->inode = made->inode;
    count_lookup(*made);
    held_.push_back(node);
    unnamed_.insert(node->inode);
    numbers_.insert(node->inode.value);
  }

  void link() {
    const ModelNodePtr file = any_file();
    if (!file) return;
    const ModelNodePtr directory = any_directory();
    const std::string name = any_name();
    Result<> expected = {};
    if (model_.find(directory, name)) {
      expected = fail(ErrorCode::exists);
    } else if (file->link_count == 0 && !unnamed_.contains(file->inode)) {
      expected = fail(ErrorCode::not_found);
    }
    const auto linked = volume().link(file->inode, directory->inode, name);
    if (!same(linked, expected)) return;
    count_lookup(*linked);
    NACRE_EXPECT_OK(model_.add(directory, name, file));
    file->moved = true;
    unnamed_.erase(file->inode);
    std::erase(held_, file);
  }

  // Called when node lost a name. If that was its last one, the node is now held or gone.
  void note_removed(const ModelNodePtr& node) {
    if (!node || node->link_count > 0) return;
    if (lookups_[node->inode] > 0) held_.push_back(node);
  }

  void remove() {
    const ModelNodePtr directory = any_directory();
    const std::string name = any_name();
    const ModelNodePtr node = model_.find(directory, name);
    if (chance(3)) {
      same(volume().remove_directory(directory->inode, name),
           model_.remove_directory(directory, name));
    } else {
      same(volume().unlink(directory->inode, name), model_.unlink(directory, name));
    }
    note_removed(node);
  }

  void rename() {
    const ModelNodePtr from = any_directory(), to = any_directory();
    const std::string name = any_name(), new_name = any_name();
    const auto mode = static_cast<RenameMode>(pick(4) % 3);  // replacing most often
    const ModelNodePtr replaced = model_.find(to, new_name);
    same(volume().rename(from->inode, name, to->inode, new_name, mode),
         model_.rename(from, name, to, new_name, mode));
    note_removed(replaced);
  }

  void write() {
    const ModelNodePtr file = any_file();
    if (!file) return;
    const std::string text = any_content();
    const std::size_t offset =
        chance(2) ? file->content.size() % file_size_max_ : pick(file_size_max_);
    same(volume().write(file->inode, offset, as_bytes(text), {}), Result<>());
    put(*file, offset, text);
  }
  static void put(ModelNode& file, std::size_t offset, std::string_view text) {
    if (text.empty()) return;
    if (file.content.size() < offset + text.size()) file.content.resize(offset + text.size());
    file.content.replace(offset, text.size(), text);
    file.content_durable = false;
  }

  void resize() {
    const ModelNodePtr file = any_file();
    if (!file) return;
    const std::size_t size = chance(5) ? 0 : pick(file_size_max_);
    same(volume().change_attributes(file->inode, {.size = size}), Result<>());
    file->content.resize(size);
    file->content_durable = false;
  }

  void allocate() {
    const ModelNodePtr file = any_file();
    if (!file) return;
    const auto mode = static_cast<AllocateMode>(pick(5));
    const std::size_t offset = pick(file_size_max_), length = 1 + pick(20'000);
    same(volume().allocate(file->inode, mode, offset, length), Result<>());
    const bool extends = mode == AllocateMode::allocate || mode == AllocateMode::zero;
    if (extends && file->content.size() < offset + length) file->content.resize(offset + length);
    if (mode != AllocateMode::allocate && mode != AllocateMode::keep_size) {
      for (std::size_t i = offset; i < std::min(offset + length, file->content.size()); ++i)
        file->content[i] = '\0';
    }
    file->content_durable = false;
  }

  void copy() {
    const ModelNodePtr from = any_file(), to = any_file();
    if (!from) return;
    const std::size_t from_offset = pick(file_size_max_), to_offset = pick(file_size_max_);
    std::size_t length = pick(30'000);
    const auto copied = volume().copy_range(from->inode, from_offset, to->inode, to_offset, length);
    length = std::min(length, from->content.size() - std::min(from->content.size(), from_offset));
    if (from == to && length > 0 && from_offset < to_offset + length &&
        to_offset < from_offset + length) {
      same(copied, fail(ErrorCode::invalid_argument));
      return;
    }
    if (!same(copied, Result<>())) return;
    EXPECT_EQ(*copied, length);
    if (length > 0) put(*to, to_offset, from->content.substr(from_offset, length));
  }

  // Any inode that has a name.
  ModelNodePtr any_node() {
    const ModelNodePtr directory = any_directory();
    if (directory->children.empty()) return directory;
    auto place = directory->children.begin();
    std::advance(place, pick(directory->children.size()));
    return place->second;
  }

  void change_owner() {
    const ModelNodePtr node = any_node();
    fs::AttributeChange change;
    if (chance(2)) {
      change.mode = static_cast<std::uint32_t>(pick(010000));
      node->mode = (node->mode & S_IFMT) | *change.mode;
    } else {
      change.uid = static_cast<std::uint32_t>(pick(1000));
      if (chance(2)) change.gid = static_cast<std::uint32_t>(pick(1000));
      node->uid = *change.uid;
      node->gid = change.gid.value_or(node->gid);
      if (!node->is_directory()) {
        node->mode &= ~static_cast<std::uint32_t>(S_ISUID);
        if (node->mode & S_IXGRP) node->mode &= ~static_cast<std::uint32_t>(S_ISGID);
      }
    }
    const auto changed = volume().change_attributes(node->inode, change);
    if (same(changed, Result<>())) compare_attributes(*node, *changed);
  }

  void change_xattr() {
    const ModelNodePtr node = any_node();
    const std::string name = fmt::format("trusted.{}", pick(4));
    const bool there = node->xattrs.contains(name);
    if (chance(3)) {
      same(volume().remove_xattr(node->inode, name),
           there ? Result<>() : fail(ErrorCode::no_attribute));
      node->xattrs.erase(name);
      return;
    }
    const auto mode = static_cast<fs::XattrMode>(pick(3));
    const std::string value = any_text();
    Result<> expected = {};
    if (there && mode == fs::XattrMode::create) expected = fail(ErrorCode::exists);
    if (!there && mode == fs::XattrMode::replace) expected = fail(ErrorCode::no_attribute);
    if (same(volume().set_xattr(node->inode, name, value, mode, false), expected)) {
      node->xattrs[name] = value;
    }
  }

  void read_some() {
    const ModelNodePtr file = any_file();
    if (!file) return;
    const std::size_t offset = pick(file_size_max_);
    Bytes bytes(pick(30'000));
    const auto count = volume().read(file->inode, offset, bytes);
    if (!same(count, Result<>())) return;
    const std::string expected =
        offset < file->content.size() ? file->content.substr(offset, bytes.size()) : "";
    EXPECT_TRUE(as_text(ByteView(bytes).first(*count)) == expected)
        << "inode " << file->inode.value;
  }

  void look_up() {
    const ModelNodePtr directory = any_directory();
    const std::string name = any_name();
    const ModelNodePtr node = model_.find(directory, name);
    const auto found = volume().lookup(directory->inode, name);
    if (!same(found, node ? Result<>() : fail(ErrorCode::not_found))) return;
    count_lookup(*found);
    compare_attributes(*node, *found);
  }

  void forget() {
    if (lookups_.empty()) return;
    auto place = lookups_.begin();
    std::advance(place, pick(lookups_.size()));
    const auto [inode, count] = *place;
    lookups_.erase(place);
    volume().forget(inode, count);
    std::erase_if(held_, [&](const ModelNodePtr& node) { return node->inode == inode; });
    unnamed_.erase(inode);
  }

  void sync_file() {
    const ModelNodePtr file = any_file();
    if (!file) return;
    bool committed = false;
    same(sync(file->inode, &committed), Result<>());
    // Without a commit nothing but this file is known to be durable; it was so already.
    if (!committed) return;
    remember_durable(model_.snapshot_after_sync(file));
  }
  void list_some() { compare_entries(any_directory()); }
  void sync_everything() {
    same(volume().sync_all(), Result<>());
    remember_durable(model_.snapshot_after_sync_all());
  }

  void compact() {
    const auto goal = chance(2) ? fs::CompactionGoal::everything : fs::CompactionGoal::space_ratio;
    const auto report = mounted().compact(goal, {});
    if (!same(report, Result<>())) return;
    EXPECT_EQ(report->immovable_count, 0u);
    remember_durable(model_.snapshot_after_sync_all());
  }

  void remember_durable(TreeModel model) {
    durable_ = std::move(model);
    durable_commits_ = mounted().stats().commits.commit_count;
  }

  void do_remount() {
    unmount();
    check_tables(backing_, options_.store.chunk_size_bytes, /*clean=*/true);
    mount();
    forget_kernel_state();
    remember_durable(model_.snapshot_after_sync_all());
    compare_all();
  }

  void crash() {
    const bool killed = chance(2);
    const auto loss = random_();
    auto after = killed ? backing_->process_kill() : backing_->power_loss(loss);
    // Compaction makes commits by itself, which include all earlier operations. Then the test
    // cannot know how much of them this crash left. One more commit shows by its number whether
    // there was another one, also one that was under way meanwhile. If so, the crash comes now.
    NACRE_EXPECT_OK(volume().sync_all());
    if (mounted().stats().commits.commit_count != durable_commits_ + 1) {
      remember_durable(model_.snapshot_after_sync_all());
      after = killed ? backing_->process_kill() : backing_->power_loss(loss);
    }
    volume_.reset();
    backing_ = std::move(after);
    check_tables(backing_, options_.store.chunk_size_bytes, /*clean=*/false);
    mount();
    ASSERT_TRUE(volume_);
    model_ = durable_.snapshot_after_sync_all();
    forget_kernel_state();
    // A file that was not synced has some earlier state. From now on the model has that state.
    for (const ModelNodePtr& file : model_.files()) {
      if (file->content_known) continue;
      file->content = read(file->inode);
      file->content_known = true;
    }
    remember_durable(model_.snapshot_after_sync_all());
    compare_all();
  }

  // Forgets what the kernel knew, as the next mount does. Inodes without a name are gone.
  void forget_kernel_state() {
    lookups_.clear();
    unnamed_.clear();
    std::set<InodeNumber> named;  // again, perhaps: a crash undoes removals
    for (const ModelNodePtr& directory : model_.directories()) {
      for (const auto& [name, node] : directory->children)
        named.insert(node->inode);
    }
    for (const ModelNodePtr& node : std::exchange(held_, {})) {
      if (!named.contains(node->inode)) {
        EXPECT_CODE(stale, volume().lookup_inode(node->inode));
      }
    }
  }

  std::mt19937 random_;
  TreeModel durable_{caller_.uid, caller_.gid};
  std::uint64_t durable_commits_ = 0;  // of this mount, when durable_ was
  std::set<InodeNumber> unnamed_;      // of held_, those that never had a name
  std::set<std::uint64_t> numbers_;
};

TEST_F(VolumeModel, behaves_as_a_plain_tree_1) {
  run(1);
}
TEST_F(VolumeModel, behaves_as_a_plain_tree_2) {
  run(2);
}
TEST_F(VolumeModel, behaves_as_a_plain_tree_3) {
  run(3);
}
TEST_F(VolumeModel, behaves_as_a_plain_tree_with_a_new_seed) {
  run(std::random_device{}());
}

// A volume whose chunks are stored in parts.
class VolumeModelOfNoise : public VolumeModel {
 protected:
  void SetUp() override {
    VolumeModel::SetUp();
    unmount();
    options_.store.chunk_size_bytes = 64u << 10;
    options_.store.segment_size_bytes = 256u << 10;
    options_.cache_budget_bytes = 1u << 20;
    mount();
    file_size_max_ = 300'000;
    noise_size_max_ = 150'000;
  }
};

TEST_F(VolumeModelOfNoise, behaves_as_a_plain_tree) {
  run(4);
}
TEST_F(VolumeModelOfNoise, behaves_as_a_plain_tree_with_a_new_seed) {
  run(std::random_device{}());
}

}  // namespace
}  // namespace nacre::tests
