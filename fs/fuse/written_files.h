// SPDX-License-Identifier: Apache-2.0
// The files of which the kernel may hold written pages, and those for which it must take the
// attributes that it is given (shown_blocks.h). Bounded: of further files, the blocks are shown as
// the volume knows them. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "gpu_engine/base/mutex.h"
#include "metadata/format/identifiers.h"

namespace nacre::fs {

class WrittenFiles {
 public:
  static constexpr std::size_t file_count_max = 65536;

  // Notes that a program that has the file open may go on writing without a question.
  void note(metadata::InodeNumber inode);
  // Notes that the file was written back, or is about to be. Returns true if it was noted before.
  bool take(metadata::InodeNumber inode);
  // Notes that the file's mode was changed behind the kernel's back. If pages were written out, the
  // kernel would drop the attributes of an answer that it waits for, and go on with the mode that
  // it knows.
  void must_be_told(metadata::InodeNumber inode);
  bool is_to_be_told(metadata::InodeNumber inode) const;
  // Notes that the file got attributes that are valid for no time. From then on readers at the end
  // of the file ask as writers do (write_gate.h).
  void may_expire(metadata::InodeNumber inode);
  bool may_have_expired(metadata::InodeNumber inode) const;
  // Notes that the kernel has forgotten the inode.
  void forget(metadata::InodeNumber inode) noexcept;

 private:
  void count_locked() NACRE_REQUIRES(mutex_) {
    count_.store(written_.size() + to_be_told_.size() + expired_.size(), std::memory_order_release);
  }

  mutable Mutex mutex_;
  std::unordered_set<std::uint64_t> written_ NACRE_GUARDED_BY(mutex_);
  std::unordered_set<std::uint64_t> to_be_told_ NACRE_GUARDED_BY(mutex_);
  std::unordered_set<std::uint64_t> expired_ NACRE_GUARDED_BY(mutex_);
  bool too_many_to_tell_ NACRE_GUARDED_BY(mutex_) = false;  // all are to be told
  bool too_many_expired_ NACRE_GUARDED_BY(mutex_) = false;  // all may have expired
  std::atomic<std::size_t> count_{0};
};

}  // namespace nacre::fs
