// SPDX-License-Identifier: Apache-2.0
// Files whose writers must wait for the volume's answer. As long as the kernel knows a file's
// attributes, it takes the bytes of write(2) without a message. If it does not know them, it first
// asks for them and names the open file, which no other question here does. So the daemon makes the
// kernel forget the attributes of files of which it refused pages, or that are written while there
// is little room. It answers that question with the error that the bytes would meet, so write(2)
// itself fails. If attributes have expired instead of being forgotten, readers ask this question,
// too; before the answer is an error, asking_call.h tells them from writers.
//
// A yes to this question is a promise: the kernel takes all bytes of the call, and keeps them for a
// while. Until it has handed over the file's pages, the room of the last call to each file is kept
// when others ask. So there is at most one such call for each file.
//
// Past a bound one of the files is left out: the kernel asks once more, gets an answer, and takes
// what is written to this file as it does for any file. Thread-safe.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "fs/volume/volume.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class WriteGate {
 public:
  static constexpr std::size_t file_count_max = 16384;
  // From now on the kernel asks before each write to the file. Returns true if the kernel must be
  // told to forget the file's attributes.
  bool close(InodeNumber inode);
  // The same, without a message to the kernel: the answer to process, which is about to be sent,
  // gives the kernel attributes that are valid for no time. So there is no moment at which a writer
  // could go on unasked. But a reader at the end of the file then asks like a writer, too. So the
  // first answer to another process that looks at the file gives the kernel attributes to keep, and
  // leaves the gate ajar.
  void close_with_answer(InodeNumber inode, pid_t process);
  // The same, after pages of the file were refused. The next process that asks gets the error,
  // whatever else holds. names_more: the kernel knows a larger size than the volume does.
  void refuse(InodeNumber inode, ErrorCode error, bool names_more);
  // The kernel is about to get attributes by an answer to process, which looks at the file. Returns
  // true if the kernel must be told to forget them before the answer: it takes none from an answer
  // for which it was already waiting when it was told.
  bool keeps_closed(InodeNumber inode, pid_t process) noexcept;
  // The kernel gets attributes that it takes in any case, by an answer to a call that changes
  // something. Writers go on unasked until close() or refuse() is called again, which happens for
  // their next page.
  void leave_ajar(InodeNumber inode) noexcept;
  void open(InodeNumber inode) noexcept;
  bool is_closed(InodeNumber inode) const noexcept;
  // Notes that the kernel has forgotten the inode.
  void forget(InodeNumber inode) noexcept;
  // Whether the kernel shows a size that the volume never got to. It shows it as long as it knows
  // the inode, so it must forget the name as soon as no program uses the file.
  bool names_more(InodeNumber inode) const noexcept;
  // The part of a file whose pages the kernel must hand over before the next answer to a writer:
  // those that it took before the daemon knew that there is little room, or by the last promise.
  // Empty: there are none.
  struct Range {
    std::uint64_t begin = 0, end = UINT64_MAX;
    bool is_empty() const { return begin >= end; }
  };
  Range promised_range(InodeNumber inode) const { return find(inode).promised; }
  // Notes an answer that lets the kernel take bytes which may need this much room.
  void promise(InodeNumber inode, Range range, std::uint64_t room_bytes);
  // Notes that the kernel has handed over the pages of the file's range.
  void settle(InodeNumber inode) noexcept;
  std::uint64_t promised_bytes() const { return promised_bytes_.load(std::memory_order_relaxed); }
  // The files to which bytes are promised.
  std::vector<InodeNumber> promised_files() const;

  // The error of pages that were refused, until a program was told.
  std::optional<ErrorCode> error_of(InodeNumber inode) const { return find(inode).error; }
  void take_error(InodeNumber inode);

  // The maximum of dirty bytes that the kernel should hold for a volume of this size.
  static std::uint64_t dirty_bytes_wanted(std::uint64_t total_bytes);
  // The maximum of dirty bytes that the kernel may hold for this mount.
  void set_dirty_bytes_max(std::uint64_t bytes) { dirty_bytes_max_ = bytes; }
  // Whether the volume may have too little room for the pages that are dirty now and those that are
  // taken until the next look. There is a look every few milliseconds. After the last look that
  // found little room, this holds for some time.
  bool is_narrow(Volume& volume);
  // Whether this began to hold since the last call. The kernel then still has the attributes of
  // files that it got before, and takes what is written to them without a question.
  bool take_narrowing() { return has_narrowed_.exchange(false, std::memory_order_relaxed); }
  // The part of the room that is kept back when a writer asks. It is for pages about which the
  // kernel does not ask: those of mappings, and of files whose writers are not asked yet.
  std::uint64_t kept_bytes() const { return kept_bytes_.load(std::memory_order_relaxed); }

 private:
  struct File {
    bool is_closed = false;
    bool is_ajar = false;        // the kernel has attributes
    std::optional<pid_t> maker;  // of close_with_answer(), until another process has looked
    std::optional<ErrorCode> error;
    bool names_more = false;
    Range promised;
    std::uint64_t promised_bytes = 0;
  };

  File find(InodeNumber inode) const noexcept;
  File& add(InodeNumber inode) NACRE_REQUIRES(mutex_);
  void take_promise(File& file) noexcept NACRE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, File> files_ NACRE_GUARDED_BY(mutex_);
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> promised_bytes_{0};  // of all files; changes under the mutex

  static bool is_narrow(const VolumeSpace& space, std::uint64_t dirty_bytes_max);

  std::atomic<std::uint64_t> dirty_bytes_max_{UINT64_MAX};
  std::atomic<std::int64_t> next_look_ms_{0};  // of the steady clock
  void set_narrow();
  std::atomic<bool> is_narrow_{false};
  std::atomic<bool> has_narrowed_{false};
  std::atomic<std::int64_t> narrow_until_ms_{0};  // of the steady clock
  std::atomic<std::uint64_t> kept_bytes_{0};
};

}  // namespace nacre::fs
