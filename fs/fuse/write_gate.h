// SPDX-License-Identifier: Apache-2.0
// Files whose writers are asked to wait for the volume's word. The kernel takes what write(2)
// brings without a message, as long as it knows the file's attributes; where it does not, it asks
// for them first, naming the open file, which nothing else does here. So the daemon makes the
// kernel forget the attributes of files that it refused pages of, or that are written while there
// is little room, and answers that question with the error that the bytes would meet: write(2)
// itself says no. Where attributes have expired, instead of being forgotten, readers ask it, too:
// before an error is the answer, asking_call.h tells them from writers.
//
// Past a bound some file is left out: the kernel asks once more, is answered, and takes what is
// written to it as it does of any file. Thread-safe.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "fs/volume/volume.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class WriteGate {
 public:
  static constexpr std::size_t file_count_max = 16384;
  // From now on the kernel asks before each write to the file. True: it must be told to forget the
  // file's attributes.
  bool close(InodeNumber inode);
  // The same, in an answer to process which gives the kernel attributes that are good for no time
  // at all: the only way that leaves a writer no time to go on unasked. But then a reader at the
  // end of the file asks like a writer, too; so the first answer to another process that looks at
  // the file gives the kernel attributes to keep, and leaves the gate ajar.
  void close_with_answer(InodeNumber inode, pid_t process);
  // The same, after pages of it were refused; the next who asks is told, whatever else holds.
  // names_more: the kernel knows a larger size than the volume does.
  void refuse(InodeNumber inode, ErrorCode error, bool names_more);
  // The kernel is about to be given attributes by an answer to process, which looks. True: it must
  // be told to forget them, before the answer: it takes none from an answer that it waited for
  // already when it was told.
  bool keeps_closed(InodeNumber inode, pid_t process) noexcept;
  // It is given attributes that it takes in any case, by an answer to a call that changes
  // something. Writers go on unasked until close() or refuse() is called again, for the next page
  // of theirs.
  void leave_ajar(InodeNumber inode) noexcept;
  void open(InodeNumber inode) noexcept;
  bool is_closed(InodeNumber inode) const noexcept;
  // The kernel has forgotten the inode.
  void forget(InodeNumber inode) noexcept;
  // The kernel shows a size that the volume never got to, and does so for as long as it knows the
  // inode: it is to forget the name as soon as nobody uses the file.
  bool names_more(InodeNumber inode) const noexcept;
  // The error of pages that were refused, until somebody was told.
  std::optional<ErrorCode> error_of(InodeNumber inode) const { return find(inode).error; }
  void take_error(InodeNumber inode);

  // The most dirty bytes that the kernel should hold for a volume of this size.
  static std::uint64_t dirty_bytes_wanted(std::uint64_t total_bytes);
  // The most that it may hold for this mount.
  void set_dirty_bytes_max(std::uint64_t bytes) { dirty_bytes_max_ = bytes; }
  // Whether the volume's room might not suffice for the pages that are dirty now and those that are
  // taken until the next look: there is one every few milliseconds.
  bool is_narrow(Volume& volume);
  // What is kept of the room when a writer asks, for pages that nobody asks for: those of mappings,
  // and of files whose writers are not asked yet.
  std::uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }

 private:
  struct File {
    bool is_closed = false;
    bool is_ajar = false;        // the kernel has attributes
    std::optional<pid_t> maker;  // of close_with_answer(), until another process has looked
    std::optional<ErrorCode> error;
    bool names_more = false;
  };

  File find(InodeNumber inode) const noexcept;
  File& add(InodeNumber inode) NACRE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, File> files_ NACRE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};

  static bool is_narrow(const VolumeSpace& space, std::uint64_t dirty_bytes_max);

  std::atomic<std::uint64_t> dirty_bytes_max_{UINT64_MAX};
  std::atomic<std::int64_t> next_look_ms_{0};  // of the steady clock
  std::atomic<bool> is_narrow_{false};
  std::atomic<std::uint64_t> kept_bytes_{0};
};

}  // namespace nacre::fs
