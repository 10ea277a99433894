// SPDX-License-Identifier: Apache-2.0
// The committer: the one place that knows the order in which a transaction group becomes durable.
//
//   (a) The data of the files in the commit's scope is sealed and appended (CommitSource::flush).
//   (b) Under the exclusive operation lock, rows that live in memory are staged, and the group is
//       frozen.
//   (c) The segments are synced by fdatasync, and so is their folder if a file is new.
//   (d) The group is written as one WriteBatch, with one sync of the write-ahead log.
//   (e) Callers that wait are told, and segments without live bytes are removed.
//
// A row may name a record only because (c) precedes (d). An operation that changes several rows
// holds an OperationLock while it does, so a group never cuts it in two.
//
// Errors: on no_space the ballast is given up and the step is tried again. If that does not help,
// the rest of the commit goes on, and a commit may free what the step lacked: the segments of data
// that was overwritten or cut off. So such a commit is tried again, a few times, before anybody is
// told. This ends because each attempt must have gained something (segments removed, backups given
// up, data brought to disk), their number has a bound, and the thread waits for nothing in between:
// in particular not for compaction, which itself waits for commits. If no attempt helps, callers
// that wait get the error, the frozen group stays frozen, and the next commit tries it again. So
// names that a rename or link moved wait until there is room for their data, and all later changes
// wait with them: a file that a rename replaced is never found empty. Any other error stops the
// committer for good: health() says why, every later request gets the same error, nothing is tried
// again, and the volume refuses changes (read_only).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "fs/store/ballast.h"
#include "fs/store/segment_store.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// The files whose data a commit must hold.
struct CommitScope {
  bool everything = false;
  std::set<InodeNumber> inodes;
  // Renames and links are held back during this flush, and with them the threads that serve such
  // requests of the kernel. So the flush must not wait for anything that the kernel has to send.
  bool moves_held = false;
  // Only data without which a rename or link cannot be committed. The room that is kept for deletes
  // may be used for it.
  bool moves_only = false;
};

// The source of a commit's data and rows; the volume implements it.
class CommitSource {
 public:
  virtual ~CommitSource() = default;
  // Step (a): seals the dirty data of the scope into the open group. Takes operation locks itself.
  // A file that cannot be flushed keeps its data, and callers that asked for this file must be
  // told. The commit of everything else goes on, unless the returned error is one of the medium.
  virtual Result<> flush(const CommitScope& scope) = 0;
  // Step (b): puts rows whose current state lives in memory (inodes, counters) into the open group.
  // Called under the exclusive operation lock. Must not wait for anything but memory.
  virtual Result<> stage() = 0;
  // The files whose names changed since the last stage() and whose data is still dirty. They must
  // be flushed before the group is frozen. Called under the exclusive operation lock.
  virtual std::set<InodeNumber> unflushed_moves() = 0;
  // The dirty bytes that were flushed since the start, by anybody. It only grows.
  virtual std::uint64_t flushed_bytes() const = 0;
};

struct CommitterStats {
  std::uint64_t commit_count = 0;
  std::uint64_t request_count = 0;
  std::uint64_t failure_count = 0;
  std::uint64_t retry_count = 0;  // attempts after one that a full disk cut short
};

class Committer {
 public:
  struct Options {
    // If there are changes, everything is committed at least this often.
    std::uint32_t interval_ms = 5000;
    Ballast* ballast = nullptr;  // borrowed; null: no_space is reported at once
    // Called on the commit thread when a step met a full disk. Returns true if something was given
    // up for the step, so that it may be tried again.
    std::function<bool()> make_room = nullptr;
  };
  Committer(metadata::Database& database, SegmentStore& store, Options options);
  ~Committer();  // ends the thread without a last commit

  // source outlives the committer's thread.
  void start(CommitSource& source);
  // Commits everything, then ends the thread. Returns the result of that last commit.
  Result<> stop();
  // Ends the thread and commits nothing, as a crash does.
  void abandon() NACRE_EXCLUDES(mutex_);

  using OperationLock = std::shared_lock<SharedMutex>;
  // An operation holds this while it changes rows. It is never held while waiting for a commit, a
  // flush, the dirty budget or the kernel. Not recursive.
  OperationLock begin_operation() {
    freeze_wanted_.wait(true, std::memory_order_acquire);  // readers must not starve the committer
    return OperationLock(operations_);
  }

  // The same for an operation that gives a file another name (rename, link). The committer holds
  // such operations back for a moment if they outrun its flushes. Taken before any other lock.
  struct MoveLock {
    std::shared_lock<SharedMutex> moves;
    OperationLock operations;
  };
  MoveLock begin_move() {
    std::shared_lock moves(moves_);
    return MoveLock{std::move(moves), begin_operation()};
  }

  // Joins the next commit. Once that is durable, or has failed, done is called on the commit
  // thread.
  void request(CommitScope scope, std::function<void(Result<>)> done) NACRE_EXCLUDES(mutex_);
  // The same, but waits for the commit.
  Result<> commit(CommitScope scope);
  // Notes that something changed, so that the interval's commit has work to do.
  void note_change() { changed_.store(true, std::memory_order_relaxed); }
  bool has_changes() const { return changed_.load(std::memory_order_relaxed); }

  // The error that stopped the committer, if one did.
  Result<> health() const NACRE_EXCLUDES(mutex_);
  CommitterStats stats() const NACRE_EXCLUDES(mutex_);

 private:
  struct Request {
    CommitScope scope;
    std::function<void(Result<>)> done;
  };
  void run() NACRE_EXCLUDES(mutex_);
  void stay_awake() const;
  // Tries again what a full disk cut short.
  Result<> commit_in_attempts(const CommitScope& scope) NACRE_EXCLUDES(mutex_);
  Result<> commit_group(const CommitScope& scope);
  // Returns false if nothing changed.
  Result<bool> freeze_group() NACRE_EXCLUDES(operations_);
  Result<> finish_group();  // steps (c) to (e)
  template <typename Step>
  Result<> with_ballast(bool (Ballast::*release)(), Step step);
  void restore_ballast();
  tl::unexpected<Error> fail_for_good(const Error& error) NACRE_EXCLUDES(mutex_);

  metadata::Database& database_;
  SegmentStore& store_;
  Options options_;
  CommitSource* source_ = nullptr;

  SharedMutex moves_;  // before operations_
  SharedMutex operations_;
  std::atomic<bool> freeze_wanted_{false};
  std::atomic<bool> changed_{false};

  mutable Mutex mutex_;
  ConditionVariable wake_;
  std::vector<Request> requests_ NACRE_GUARDED_BY(mutex_);
  std::atomic<bool> has_requests_{false};  // for a look without the mutex
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  Result<> health_ NACRE_GUARDED_BY(mutex_) = {};
  CommitterStats stats_ NACRE_GUARDED_BY(mutex_);
  // Used by the commit thread only. The first two say what could not be written for lack of space:
  // a frozen group, or data of files.
  bool frozen_left_ = false;
  bool data_left_ = false;
  bool something_left_ = false;  // the interval's commit tries it again
  bool is_cut_short_ = false;    // no_space kept something of the last attempt from the disk
  bool has_gained_ = false;      // the last attempt freed room, or left less to write
  std::thread thread_;
};

}  // namespace nacre::fs
