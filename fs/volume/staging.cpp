// SPDX-License-Identifier: Apache-2.0
#include "fs/volume/staging.h"

#include <utility>

#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::InodeRow;
using metadata::Table;

namespace {

constexpr char orphan_row_version = 1;

}  // namespace

Staging::Staging(metadata::Database& database, InodeTable& inodes, Committer& committer,
                 const Counters& counters)
    : database_(database),
      inodes_(inodes),
      committer_(committer),
      next_inode_(counters.next_inode),
      inode_limit_(counters.next_inode + inode_reserve_count),
      inode_count_(static_cast<std::int64_t>(counters.inode_count)),
      data_bytes_(static_cast<std::int64_t>(counters.data_bytes)),
      staged_inode_count_(counters.inode_count),
      staged_data_bytes_(counters.data_bytes),
      staged_next_inode_(inode_limit_) {}

void Staging::mark_dirty(Inode& inode, Inode::Locked& locked) {
  inodes_.mark_dirty(inode, locked);
  committer_.note_change();
}

void Staging::note_namespace_change() {
  namespace_group_ = open_group_.load();
  committer_.note_change();
}

void Staging::note_move(const Inode& inode) {
  if (!inode.is_regular()) return;
  LockGuard lock(moves_mutex_);
  moves_[inode.number()] = ++move_count_;
}

bool Staging::is_moved(InodeNumber inode) {
  LockGuard lock(moves_mutex_);
  return moves_.contains(inode);
}

Result<InodeNumber> Staging::next_inode_number() {
  // A number counts only when it is given out. If numbers were taken back, one could be given out
  // twice.
  for (std::uint64_t number = next_inode_; number < inode_limit_;) {
    if (next_inode_.compare_exchange_weak(number, number + 1)) return InodeNumber{number};
  }
  return fail(ErrorCode::no_space, "no inode numbers until the next commit");
}

void Staging::remove_inode(const InodeState& state) {
  data_bytes_ -= static_cast<std::int64_t>(state.staged_data_bytes);
  --inode_count_;
}

Staging::Moves Staging::moves() {
  LockGuard lock(moves_mutex_);
  return moves_;
}

Result<> Staging::note_flushed(const CommitScope& scope, const Moves& moves, Result<> flushed,
                               FileFailures failures) {
  if (scope.everything) flush_failures_.clear();
  for (const InodeNumber inode : scope.inodes)
    flush_failures_.erase(inode);
  flush_failures_.merge(failures);
  LockGuard lock(moves_mutex_);
  if (scope.everything) file_error_ = flushed;
  if (!flushed && !is_of_one_file(flushed.error().code)) return flushed;
  for (const auto& [inode, when] : moves) {
    const auto place = moves_.find(inode);
    if (place != moves_.end() && place->second == when) moves_.erase(place);
  }
  return {};
}

std::set<InodeNumber> Staging::moves_that(const std::function<bool(InodeNumber)>& are_unflushed) {
  std::set<InodeNumber> unflushed;
  LockGuard lock(moves_mutex_);
  for (const auto& [inode, when] : moves_) {
    if (are_unflushed(inode)) unflushed.insert(inode);
  }
  return unflushed;
}

bool Staging::stage() {
  const std::uint64_t group = open_group_++;
  // Every change of content, names or attributes changes an inode.
  const auto changed = inodes_.take_dirty(group);
  for (const InodeRef& inode : changed)
    stage_inode(*inode, group);
  stage_counters();
  LockGuard lock(moves_mutex_);
  moves_.clear();
  return !changed.empty();
}

void Staging::stage_inode(Inode& inode, std::uint64_t group) {
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
      database_.put(table, key, std::move(value));
    } else {
      database_.put_new(table, key, std::move(value));
    }
  };
  put(locked->has_row, Table::inodes, metadata::inode_key(number), metadata::encode(row));
  locked->has_row = true;
  const bool is_orphan = row.link_count == 0;
  if (is_orphan == locked->has_orphan_row) return;
  if (is_orphan) {
    put(false, Table::orphans, metadata::orphan_key(number), std::string(1, orphan_row_version));
  } else {
    database_.erase(Table::orphans, metadata::orphan_key(number));
  }
  locked->has_orphan_row = is_orphan;
}

void Staging::stage_counters() {
  const auto put = [&](std::string_view key, std::uint64_t value, std::uint64_t& staged) {
    if (value == staged) return;
    database_.put(Table::system, key, metadata::encode_u64(value));
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

bool Staging::is_durable(Inode& inode) {
  const std::uint64_t durable = durable_group_;
  if (namespace_group_ > durable) return false;
  // A flush marks the inode dirty at the moment when it moves data to the open group. So dirty data
  // is asked about first.
  const auto data = inode.lock()->data;
  if (data && data->is_dirty()) return false;
  const auto locked = inode.lock();
  return !locked->dirty && locked->staged_group <= durable;
}

void Staging::note_durable() {
  // Called on the commit thread after a commit, which made durable what was staged last.
  NACRE_CHECK(open_group_ > durable_group_, "group {} is open where group {} is durable",
              open_group_.load(), durable_group_.load());
  durable_group_ = open_group_ - 1;
}

const Error* Staging::failure_of(InodeNumber inode) const {
  const auto failure = flush_failures_.find(inode);
  return failure == flush_failures_.end() ? nullptr : &failure->second;
}

Result<> Staging::file_error() {
  LockGuard lock(moves_mutex_);
  return file_error_;
}

}  // namespace nacre::fs
