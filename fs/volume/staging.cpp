// SPDX-License-Identifier: Apache-2.0
// What a commit takes from the volume, and who waits for one.
//
// Names are in the open group from the moment they change. With them must go the data of files that
// a rename or link moved: "write a new file, rename it over the old one" leaves the old or the new
// content after a crash, never an empty file. The kernel may still hold such data, so it is asked
// for it first.
#include <algorithm>
#include <future>
#include <utility>

#include "fs/volume/volume_impl.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::InodeRow;
using metadata::Table;

namespace {

constexpr char orphan_row_version = 1;

}  // namespace

void VolumeImpl::set_kernel_cache(KernelCache* kernel_cache) {
  std::lock_guard lock(kernel_cache_mutex_);
  kernel_cache_ = kernel_cache;
  has_kernel_cache_ = kernel_cache != nullptr;
}

void VolumeImpl::durable_state_changed(InodeNumber number) {
  // Being dirty keeps the inode from being dropped before its row knows the new size.
  const InodeRef inode = inodes_.find(number);
  if (!inode) return;
  auto locked = inode->lock();
  mark_dirty(*inode, locked);
}

Result<> VolumeImpl::flush(const CommitScope& scope) {
  inodes_.drop_lingering();
  reaper_.erase_small();
  std::map<InodeNumber, std::uint64_t> moves;
  {
    std::lock_guard lock(moves_mutex_);
    moves = moves_;
  }
  CommitScope wider = scope;
  for (const auto& [inode, when] : moves) {
    // What the kernel still holds of a file that is renamed amid a storm of renames, without having
    // been closed before, comes with a later commit.
    std::lock_guard lock(kernel_cache_mutex_);
    if (kernel_cache_ != nullptr && !scope.moves_held) {
      compactor_.exempt_writes(inode);  // this very thread waits for their answers
      kernel_cache_->write_out(inode);
      compactor_.exempt_writes(std::nullopt);
    }
    wider.inodes.insert(inode);
  }
  FileFailures failures;
  const auto flushed = cache_.flush(wider, options_.inline_commit_bytes_max, failures);
  if (wider.everything) flush_failures_.clear();
  for (const InodeNumber inode : wider.inodes)
    flush_failures_.erase(inode);
  flush_failures_.merge(failures);
  std::lock_guard lock(moves_mutex_);
  if (scope.everything) file_error_ = flushed;
  if (!flushed && !is_of_one_file(flushed.error().code)) return flushed;
  for (const auto& [inode, when] : moves) {
    const auto place = moves_.find(inode);
    if (place != moves_.end() && place->second == when) moves_.erase(place);
  }
  return {};
}

std::set<InodeNumber> VolumeImpl::unflushed_moves() {
  std::set<InodeNumber> unflushed;
  std::lock_guard lock(moves_mutex_);
  for (const auto& [inode, when] : moves_) {
    if (has_kernel_cache_ || cache_.is_dirty(inode)) unflushed.insert(inode);
  }
  return unflushed;
}

Result<> VolumeImpl::stage() {
  const std::uint64_t group = open_group_++;
  // Whatever changes content, names or attributes changes an inode.
  const auto changed = inodes_.take_dirty(group);
  if (!changed.empty()) checkpointer_.note_change();
  for (const InodeRef& inode : changed)
    stage_inode(*inode, group);
  stage_counters();
  compactor_.wake();
  std::lock_guard lock(moves_mutex_);
  moves_.clear();
  return {};
}

void VolumeImpl::stage_inode(Inode& inode, std::uint64_t group) {
  const auto locked = inode.lock();
  locked->dirty = false;
  if (inode.is_gone()) return;
  locked->staged_group = group;
  const InodeNumber number = inode.number();
  InodeRow row = locked->row;
  if (locked->data) {
    row.size = locked->data->durable_size();
    row.data_bytes = locked->data->durable_data_bytes();
  }
  data_bytes_ += static_cast<std::int64_t>(row.data_bytes - locked->staged_data_bytes);
  locked->staged_data_bytes = row.data_bytes;
  const auto put = [&](bool exists, Table table, std::string key, std::string value) {
    if (exists) {
      database_->put(table, key, std::move(value));
    } else {
      database_->put_new(table, key, std::move(value));
    }
  };
  put(locked->has_row, Table::inodes, metadata::inode_key(number), metadata::encode(row));
  locked->has_row = true;
  const bool is_orphan = row.link_count == 0;
  if (is_orphan == locked->has_orphan_row) return;
  if (is_orphan) {
    put(false, Table::orphans, metadata::orphan_key(number), std::string(1, orphan_row_version));
  } else {
    database_->erase(Table::orphans, metadata::orphan_key(number));
  }
  locked->has_orphan_row = is_orphan;
}

void VolumeImpl::stage_counters() {
  const auto put = [&](std::string_view key, std::uint64_t value, std::uint64_t& staged) {
    if (value == staged) return;
    database_->put(Table::system, key, metadata::encode_u64(value));
    staged = value;
  };
  put(metadata::system_key_inode_count, static_cast<std::uint64_t>(inode_count_.load()),
      staged_inode_count_);
  put(metadata::system_key_data_bytes, static_cast<std::uint64_t>(data_bytes_.load()),
      staged_data_bytes_);
  const std::uint64_t next = next_inode_;
  NACRE_CHECK(next <= inode_limit_, "inode {} is next where the disk knows {}", next,
              inode_limit_.load());
  if (closing_) {
    inode_limit_ = next;
  } else if (inode_limit_ - next < inode_reserve_count / 2) {
    inode_limit_ = next + inode_reserve_count;
  }
  put(metadata::system_key_next_inode, inode_limit_, staged_next_inode_);
}

bool VolumeImpl::is_durable(Inode& inode) {
  const std::uint64_t durable = durable_group_;
  if (namespace_group_ > durable) return false;
  // What a flush moves to the open group marks the inode dirty at the same moment: so dirty data is
  // asked about first.
  const auto data = inode.lock()->data;
  if (data && data->is_dirty()) return false;
  const auto locked = inode.lock();
  return !locked->dirty && locked->staged_group <= durable;
}

void VolumeImpl::note_durable() {
  // On the commit thread, after a commit: what was staged last is what it made durable.
  NACRE_CHECK(open_group_ > durable_group_, "group {} is open where group {} is durable",
              open_group_.load(), durable_group_.load());
  durable_group_ = open_group_ - 1;
}

// What fsync reports: that the volume takes no more changes is no answer to it.
tl::unexpected<Error> VolumeImpl::sync_error(Error error, InodeNumber inode) {
  if (error.code == ErrorCode::read_only) error.code = ErrorCode::io;
  return tl::unexpected(with_path(std::move(error), inode));
}

void VolumeImpl::sync_inode(InodeNumber number, std::function<void(Result<>)> done) {
  auto inode = inodes_.acquire(number);
  if (!inode) return done(tl::unexpected(inode.error()));
  if (options_.read_only || (committer_.health() && is_durable(**inode))) return done({});
  auto tell = [this, inode = *inode, done = std::move(done)](Result<> outcome) mutable {
    if (outcome) {
      note_durable();
      const auto failure = flush_failures_.find(inode->number());
      if (failure != flush_failures_.end()) outcome = tl::unexpected(failure->second);
    }
    if (!outcome) outcome = sync_error(std::move(outcome).error(), inode->number());
    inode = {};  // whoever is told may delete it
    done(std::move(outcome));
  };
  committer_.request(CommitScope{.inodes = {number}}, std::move(tell));
}

Result<> VolumeImpl::sync_all() {
  if (options_.read_only) return {};
  // Judged on the commit thread: a later flush may do better before this thread wakes.
  const auto outcome = std::make_shared<std::promise<Result<>>>();
  auto told = outcome->get_future();
  committer_.request(CommitScope{.everything = true}, [this, outcome](Result<> committed) {
    std::lock_guard lock(moves_mutex_);
    outcome->set_value(committed ? file_error_ : std::move(committed));
  });
  return told.get();
}

Result<> VolumeImpl::close() {
  if (std::exchange(closed_, true)) return {};
  Result<> last;
  list_ahead_.stop();
  checkpointer_.stop();
  compactor_.stop();
  if (!options_.read_only) {
    // Deleted files that the kernel never forgot go with the last commit.
    inodes_.forget_all();
    reaper_.stop();
    cache_.stop();
    closing_ = true;
    checkpointer_.write_last();
    last = committer_.stop();
  }
  inodes_.keep_everything();
  cache_.stop();
  if (options_.read_only) return {};
  NACRE_TRY(last);
  auto closed = database_->close();
  if (!closed && closed.error().code == ErrorCode::no_space && ballast_.release_for_rows()) {
    closed = database_->close();
  }
  NACRE_TRY(closed);
  std::lock_guard lock(moves_mutex_);
  return file_error_;
}

VolumeImpl::~VolumeImpl() {
  list_ahead_.stop();
  checkpointer_.stop();
  compactor_.stop();
  inodes_.keep_everything();
  reaper_.stop();
  committer_.abandon();
  cache_.stop();
}

}  // namespace nacre::fs
