// SPDX-License-Identifier: Apache-2.0
// The calls that wait for a commit: fsync and sync.
#include <future>
#include <memory>
#include <utility>

#include "fs/volume/files.h"

namespace nacre::fs {

// The error of an fsync. read_only would only say that later changes are refused, so it becomes io.
tl::unexpected<Error> Files::sync_error(Error error, InodeNumber inode) {
  if (error.code == ErrorCode::read_only) error.code = ErrorCode::io;
  return tl::unexpected(with_path(std::move(error), inode));
}

void Files::sync_inode(InodeNumber number, std::function<void(Result<>)> done) {
  auto inode = inodes_.acquire(number);
  if (!inode) return done(tl::unexpected(inode.error()));
  if (rules_.read_only || (committer_.health() && staging_.is_durable(**inode))) return done({});
  auto tell = [this, inode = *inode, done = std::move(done)](Result<> outcome) mutable {
    if (outcome) {
      staging_.note_durable();
      const Error* const failure = staging_.failure_of(inode->number());
      if (failure != nullptr) outcome = tl::unexpected(*failure);
    }
    if (!outcome) outcome = sync_error(std::move(outcome).error(), inode->number());
    inode = {};  // the callback may delete the inode
    done(std::move(outcome));
  };
  committer_.request(CommitScope{.inodes = {number}}, std::move(tell));
}

Result<> Files::sync_all() {
  if (rules_.read_only) return {};
  // The outcome is taken on the commit thread, since a later flush may succeed before this thread
  // wakes.
  const auto outcome = std::make_shared<std::promise<Result<>>>();
  auto told = outcome->get_future();
  committer_.request(CommitScope{.everything = true}, [this, outcome](Result<> committed) {
    outcome->set_value(committed ? staging_.file_error() : std::move(committed));
  });
  return told.get();
}

}  // namespace nacre::fs
