// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/worked_volume.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/crash/recovery.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {

using fs::InodeNumber;
using fs::RenameMode;

namespace {

constexpr fs::Caller caller{.uid = 1000, .gid = 100, .umask = 022};
// A file that has that many chunks may be written back while it is being written.
constexpr std::uint64_t streamed_chunks = 32;

}  // namespace

fs::VolumeOptions worked_volume_options() {
  fs::VolumeOptions options;
  options.commit_interval_ms = 3'600'000;  // scripts commit when they want to
  options.inline_commit_bytes_max = 4u << 10;
  options.dirty_budget_bytes = 32u << 20;
  options.cache_budget_bytes = 4u << 20;
  options.flush_size_bytes_max = 64u << 10;
  options.store.segment_size_bytes = 256u << 10;
  options.store.fresh_lane_count = fs::fresh_lane_count_max;  // as on a disk of 8 GiB
  options.store.chunk_size_bytes = 4u << 10;
  return options;
}

WorkedVolume::WorkedVolume(std::shared_ptr<metadata::BackingDirectory> backing,
                           fs::VolumeOptions options, std::set<ErrorCode> tolerated)
    : backing_(std::move(backing)),
      options_(std::move(options)),
      tolerated_(std::move(tolerated)),
      tree_(caller.uid, caller.gid),
      history_(options_.store.chunk_size_bytes) {
  history_.end_step("format", names());
}

WorkedVolume::~WorkedVolume() = default;

void WorkedVolume::format(const std::shared_ptr<metadata::BackingDirectory>& backing) {
  NACRE_ASSERT_OK(fs::Mounted::format(backing, test_keys(), 1, caller));
}

Promises WorkedVolume::promises() const {
  const std::lock_guard lock(mutex_);
  return promises_;
}

StepNumber WorkedVolume::begin() {
  was_sick_ = volume_ && volume_.mounted().stats().health != "ok";
  const std::lock_guard lock(mutex_);
  return ++promises_.begun;
}

void WorkedVolume::end(std::string what) {
  history_.end_step(std::move(what), names());
}

void WorkedVolume::leave_out() {
  EXPECT_FALSE(tolerated_.empty()) << "a script asks for what cannot be";
  met_errors_ = true;
}

template <typename T>
bool WorkedVolume::succeeded(const Result<T>& result) {
  if (result) {
    EXPECT_FALSE(was_sick_) << "a volume whose commit failed took a change";
    return true;
  }
  met_errors_ = true;
  EXPECT_TRUE(tolerated_.contains(result.error().code))
      << to_string(result.error().code) << ": " << result.error().message;
  return false;
}

std::optional<WorkedVolume::Place> WorkedVolume::place_of(std::string_view path) const {
  Place place{.parent = tree_.root()};
  while (true) {
    const std::size_t slash = path.find('/');
    place.name = path.substr(0, slash);
    if (!place.parent || !place.parent->is_directory()) return std::nullopt;
    place.node = tree_.find(place.parent, place.name);
    if (slash == std::string_view::npos) return place;
    place.parent = place.node;
    path.remove_prefix(slash + 1);
  }
}

ModelNodePtr WorkedVolume::find(std::string_view path) const {
  if (path.empty()) return tree_.root();
  const auto place = place_of(path);
  return place ? place->node : nullptr;
}

bool WorkedVolume::has_file(std::string_view path) const {
  const ModelNodePtr node = find(path);
  return node && node->is_regular();
}

bool WorkedVolume::has_directory(std::string_view path) const {
  const ModelNodePtr node = find(path);
  return node && node->is_directory();
}

void WorkedVolume::open() {
  if (volume_ || lost_) return leave_out();
  begin();
  auto engine = engine::Engine::create({.thread_count = 1});
  NACRE_ASSERT_OK(engine);
  auto opened = fs::Mounted::open(backing_, test_keys(), 1, std::move(*engine), options_);
  if (succeeded(opened)) volume_ = std::move(*opened);
  end("open");
}

void WorkedVolume::add(const Place& place, std::uint32_t mode, std::string_view target,
                       const Result<fs::Attributes>& made, StepNumber step) {
  if (!succeeded(made)) return;
  const auto node = std::make_shared<ModelNode>();
  node->inode = made->inode;
  node->mode = mode;
  node->uid = caller.uid;
  node->gid = caller.gid;
  node->content = target;
  NACRE_EXPECT_OK(tree_.add(place.parent, place.name, node));
  ++lookups_[node->inode];
  if (node->is_regular()) history_.add_file(step, node->inode);
}

void WorkedVolume::make_file(std::string_view path) {
  const auto place = place_of(path);
  if (!volume_ || !place || place->node) return leave_out();
  const StepNumber step = begin();
  add(*place, S_IFREG | 0644, "",
      volume_->make_node(place->parent->inode, place->name, caller, S_IFREG | 0666, 0), step);
  end(fmt::format("make file {}", path));
}

void WorkedVolume::make_directory(std::string_view path) {
  const auto place = place_of(path);
  if (!volume_ || !place || place->node) return leave_out();
  const StepNumber step = begin();
  add(*place, S_IFDIR | 0755, "",
      volume_->make_directory(place->parent->inode, place->name, caller, 0777), step);
  end(fmt::format("make directory {}", path));
}

void WorkedVolume::make_symlink(std::string_view path, std::string_view target) {
  const auto place = place_of(path);
  if (!volume_ || !place || place->node) return leave_out();
  const StepNumber step = begin();
  add(*place, S_IFLNK | 0777, target,
      volume_->make_symlink(place->parent->inode, place->name, caller, target), step);
  end(fmt::format("make symlink {}", path));
}

void WorkedVolume::link(std::string_view path, std::string_view new_path) {
  const ModelNodePtr node = find(path);
  const auto place = place_of(new_path);
  if (!volume_ || !node || !place || place->node) return leave_out();
  const StepNumber step = begin();
  if (succeeded(volume_->link(node->inode, place->parent->inode, place->name))) {
    NACRE_EXPECT_OK(tree_.add(place->parent, place->name, node));
    ++lookups_[node->inode];
    history_.move(step, node->inode);
  }
  end(fmt::format("link {} to {}", path, new_path));
}

void WorkedVolume::forget(const ModelNodePtr& node) {
  volume_->forget(node->inode, std::exchange(lookups_[node->inode], 0));
}

bool WorkedVolume::hold(const Place& place) {
  const auto found = volume_->lookup(place.parent->inode, place.name);
  if (found) {
    ++lookups_[found->inode];
    return true;
  }
  met_errors_ = true;
  EXPECT_TRUE(tolerated_.contains(found.error().code)) << found.error().message;
  return false;
}

void WorkedVolume::remove(std::string_view path, bool is_held) {
  const auto place = place_of(path);
  if (!volume_ || !place || !place->node) return leave_out();
  if (is_held && !hold(*place)) return;
  begin();
  if (succeeded(volume_->unlink(place->parent->inode, place->name))) {
    NACRE_EXPECT_OK(tree_.unlink(place->parent, place->name));
    if (is_held) {
      held_ = place->node->inode;
    } else if (place->node->link_count == 0) {
      forget(place->node);
    }
  }
  end(fmt::format("unlink {}", path));
}

void WorkedVolume::unlink(std::string_view path) {
  remove(path, false);
}

void WorkedVolume::unlink_held(std::string_view path) {
  remove(path, true);
}

void WorkedVolume::remove_directory(std::string_view path) {
  const auto place = place_of(path);
  if (!volume_ || !place || !place->node || !place->node->children.empty()) return leave_out();
  begin();
  if (succeeded(volume_->remove_directory(place->parent->inode, place->name))) {
    NACRE_EXPECT_OK(tree_.remove_directory(place->parent, place->name));
    forget(place->node);
  }
  end(fmt::format("remove directory {}", path));
}

void WorkedVolume::rename(std::string_view path, std::string_view new_path, RenameMode mode) {
  const auto from = place_of(path);
  const auto to = place_of(new_path);
  if (!volume_ || !from || !to || !from->node) return leave_out();
  if (mode == RenameMode::exchange && !to->node) return leave_out();
  const StepNumber step = begin();
  const auto renamed =
      volume_->rename(from->parent->inode, from->name, to->parent->inode, to->name, mode);
  if (succeeded(renamed)) {
    NACRE_EXPECT_OK(tree_.rename(from->parent, from->name, to->parent, to->name, mode));
    if (from->node != to->node) history_.move(step, from->node->inode);
    if (mode == RenameMode::exchange) history_.move(step, to->node->inode);
    if (to->node && to->node->link_count == 0) forget(to->node);
  }
  end(fmt::format("rename {} to {}", path, new_path));
}

void WorkedVolume::set_xattr(std::string_view path, const std::string& name,
                             const std::string& value) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node) return leave_out();
  begin();
  if (succeeded(volume_->set_xattr(node->inode, name, value, fs::XattrMode::set, false))) {
    node->xattrs[name] = value;
  }
  end(fmt::format("set {} of {}", name, path));
}

void WorkedVolume::remove_xattr(std::string_view path, const std::string& name) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node || !node->xattrs.contains(name)) return leave_out();
  begin();
  if (succeeded(volume_->remove_xattr(node->inode, name))) node->xattrs.erase(name);
  end(fmt::format("remove {} of {}", name, path));
}

void WorkedVolume::change_mode(std::string_view path, std::uint32_t mode) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node) return leave_out();
  begin();
  if (succeeded(volume_->change_attributes(node->inode, {.mode = mode}))) {
    node->mode = (node->mode & S_IFMT) | mode;
  }
  end(fmt::format("change the mode of {}", path));
}

void WorkedVolume::write(InodeNumber inode, const std::vector<Extent>& extents, std::string what) {
  const StepNumber step = begin();
  std::map<std::uint64_t, std::string> pieces;
  for (const Extent& extent : extents) {
    std::string bytes = History::bytes_of(step, extent.offset, extent.size);
    if (!succeeded(volume_->write(inode, extent.offset, as_bytes(bytes), {}))) break;
    written_bytes_[inode] += bytes.size();
    pieces[extent.offset] = std::move(bytes);
  }
  if (!pieces.empty()) history_.write(step, inode, pieces);
  // Before the failed flush, another one may have taken a part of the file.
  const std::uint64_t streamed_bytes = streamed_chunks * options_.store.chunk_size_bytes;
  if (!tolerated_.empty() || extents.size() > 1 || written_bytes_[inode] >= streamed_bytes) {
    history_.by_chunk(inode);
  }
  end(std::move(what));
}

void WorkedVolume::write(std::string_view path, std::uint64_t offset, std::size_t size) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node || !node->is_regular()) return leave_out();
  write(node->inode, {{offset, size}}, fmt::format("write {} at {}, {} bytes", path, offset, size));
}

void WorkedVolume::write_with_gaps(std::string_view path, std::uint64_t first_chunk,
                                   std::uint64_t chunk_count) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node || !node->is_regular()) return leave_out();
  const std::uint64_t chunk_size = options_.store.chunk_size_bytes;
  std::vector<Extent> extents;
  for (std::uint64_t index = first_chunk; index < first_chunk + chunk_count; ++index)
    extents.push_back({index * chunk_size + 1, chunk_size - 1});
  write(node->inode, extents,
        fmt::format("write {} chunks of {} from {}", chunk_count, path, first_chunk));
}

void WorkedVolume::write_held(std::uint64_t offset, std::size_t size) {
  if (!volume_ || held_ == InodeNumber{}) return leave_out();
  write(held_, {{offset, size}}, fmt::format("write the deleted file at {}", offset));
}

void WorkedVolume::truncate(std::string_view path, std::uint64_t size) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node || !node->is_regular()) return leave_out();
  const StepNumber step = begin();
  if (succeeded(volume_->change_attributes(node->inode, {.size = size}))) {
    history_.truncate(step, node->inode, size);
  }
  end(fmt::format("truncate {} to {}", path, size));
}

void WorkedVolume::punch(std::string_view path, std::uint64_t offset, std::uint64_t length) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node || !node->is_regular()) return leave_out();
  const StepNumber step = begin();
  if (succeeded(volume_->allocate(node->inode, fs::AllocateMode::punch_hole, offset, length))) {
    history_.punch(step, node->inode, offset, length);
  }
  end(fmt::format("punch {} at {}, {} bytes", path, offset, length));
}

void WorkedVolume::allocate(std::string_view path, fs::AllocateMode mode, std::uint64_t offset,
                            std::uint64_t length) {
  using fs::AllocateMode;
  const ModelNodePtr node = find(path);
  if (!volume_ || !node || !node->is_regular()) return leave_out();
  const StepNumber step = begin();
  if (succeeded(volume_->allocate(node->inode, mode, offset, length))) {
    const std::uint64_t size = history_.latest(node->inode).size();
    const bool zeroes = mode != AllocateMode::allocate && mode != AllocateMode::keep_size;
    const bool extends = mode == AllocateMode::allocate || mode == AllocateMode::zero;
    if (zeroes && offset < size) history_.punch(step, node->inode, offset, length);
    if (extends && offset + length > size) {
      history_.truncate(step, node->inode, offset + length);
    }
  }
  end(fmt::format("allocate {} at {}, {} bytes, mode {}", path, offset, length,
                  static_cast<int>(mode)));
}

void WorkedVolume::sync(std::string_view path) {
  const ModelNodePtr node = find(path);
  if (!volume_ || !node) return leave_out();
  const StepNumber step = begin();
  bool committed = false;
  if (succeeded(sync_and_wait(*volume_, node->inode, &committed))) {
    const std::lock_guard lock(mutex_);
    if (node->is_regular()) promises_.synced[node->inode] = history_.latest_write(node->inode);
    // Without a commit, only this file is known to be durable, which it was already.
    if (committed) promises_.confirmed = step;
  }
  end(fmt::format("sync {}", path));
}

void WorkedVolume::promise_all(StepNumber step) {
  const std::lock_guard lock(mutex_);
  promises_.confirmed = step;
  for (const InodeNumber inode : history_.files())
    promises_.synced[inode] = history_.latest_write(inode);
}

void WorkedVolume::sync_all() {
  if (!volume_) return leave_out();
  const StepNumber step = begin();
  if (succeeded(volume_->sync_all())) promise_all(step);
  end("sync all");
}

void WorkedVolume::write_checkpoint(fs::CheckpointKeep keep) {
  if (!volume_) return leave_out();
  const StepNumber step = begin();
  if (succeeded(volume_.mounted().write_checkpoint(keep))) promise_all(step);
  end("write a checkpoint");
}

void WorkedVolume::compact() {
  if (!volume_) return leave_out();
  begin();
  succeeded(volume_.mounted().compact(fs::CompactionGoal::everything, {}));
  end("compact");
}

void WorkedVolume::close() {
  if (!volume_) return leave_out();
  const StepNumber step = begin();
  lost_ = !succeeded(volume_.mounted().close());
  if (!lost_) promise_all(step);
  volume_.reset();
  lookups_.clear();
  held_ = {};
  end("close");
}

std::string WorkedVolume::names() const {
  std::string text;
  const std::function<void(const ModelNode&, const std::string&)> add_node =
      [&](const ModelNode& node, const std::string& path) {
        text += entry_text({.path = path,
                            .inode = node.inode,
                            .mode = node.mode,
                            .uid = node.uid,
                            .gid = node.gid,
                            .link_count = node.link_count,
                            .entry_count = node.children.size(),
                            .target = S_ISLNK(node.mode) ? node.content : "",
                            .xattrs = node.xattrs});
        for (const auto& [name, child] : node.children)
          add_node(*child, path + "/" + name);
      };
  add_node(*tree_.root(), "");
  return text;
}

void WorkedVolume::expect_up_to_date() {
  Promises all = promises();
  all.confirmed = all.begun;
  for (const InodeNumber inode : history_.files())
    all.synced[inode] = history_.latest_write(inode);
  EXPECT_EQ(history_.objection(read_tree(*volume_), all), "");
}

}  // namespace nacre::tests
