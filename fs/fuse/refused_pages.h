// SPDX-License-Identifier: Apache-2.0
// Pages that the kernel took from programs and that the volume refused when they were written back.
// The kernel marks such pages clean. It would show them as the file's content, let fsync succeed
// for a program that opened the file later, and forget them when it needs the memory. So the daemon
// makes the kernel drop them. It does so on a thread that serves no request, because the kernel
// waits there for the answer to the WRITE.
//
// The content of this class is bounded by the kernel's dirty pages. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

class RefusedPages {
 public:
  struct Range {
    std::uint64_t begin = 0, end = 0;  // in bytes
  };
  // If a file has more ranges than this, the pages between them are dropped, too.
  static constexpr std::size_t range_count_max = 1024;
  // A drop hands over pages that are dirty again, and those are refused again. A file that is
  // mapped and written without a pause would make this go on for ever. So a drop ends after this
  // many rounds, and the next refusal or the next fsync begins another one.
  static constexpr unsigned round_count_max = 8;

  // Returns true if the caller is to start a drop of the file's pages, and false if one is under
  // way.
  bool note(metadata::InodeNumber inode, Range range, ErrorCode error);
  // Called by the drop again and again: returns the ranges to drop now. None: the drop is over.
  std::vector<Range> take(metadata::InodeNumber inode);
  struct Refusal {
    ErrorCode error = ErrorCode::io;  // the last one
    bool is_to_be_dropped = false;    // the caller is to start a drop of the file's pages
  };
  // For a file of which refused pages may still be shown: its shown content is not what is stored.
  std::optional<Refusal> ask(metadata::InodeNumber inode);
  // Notes that a drop could not be begun.
  void give_up(metadata::InodeNumber inode);
  // Notes that the kernel has forgotten the inode, and its pages with it.
  void forget(metadata::InodeNumber inode) noexcept;

 private:
  struct File {
    std::map<std::uint64_t, std::uint64_t> ranges;  // begin to end; none touches another
    ErrorCode error = ErrorCode::io;
    unsigned round_count = 0;
    bool is_being_dropped = false;
  };

  Mutex mutex_;
  std::atomic<std::size_t> count_{0};  // the number of files
  std::unordered_map<std::uint64_t, File> files_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
