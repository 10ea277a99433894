// SPDX-License-Identifier: Apache-2.0
// The table of error codes, and the log of faults.
#include "fs/fuse/errno.h"

#include <cerrno>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace nacre::fs {

namespace {

// Past this number the lowest inode numbers are forgotten, and may be logged again.
constexpr std::size_t known_fault_count_max = 4096;
constexpr std::uint64_t faults_per_window_max = 60;
constexpr std::chrono::seconds window{60};

}  // namespace

int to_errno(ErrorCode code) {
  switch (code) {
    case ErrorCode::corrupt:
    case ErrorCode::tampered:
    case ErrorCode::wrong_key:
    case ErrorCode::missing:
    case ErrorCode::rolled_back:
    case ErrorCode::io:
      return EIO;
    case ErrorCode::invalid_argument:
      return EINVAL;
    case ErrorCode::unsupported:
      return EOPNOTSUPP;
    case ErrorCode::busy:
      return EBUSY;
    case ErrorCode::no_space:
      return ENOSPC;
    case ErrorCode::read_only:
      return EROFS;
    case ErrorCode::out_of_memory:
      return ENOMEM;
    case ErrorCode::permission:
      return EACCES;
    case ErrorCode::not_permitted:
      return EPERM;
    case ErrorCode::cancelled:
      return EINTR;
    case ErrorCode::not_found:
      return ENOENT;
    case ErrorCode::exists:
      return EEXIST;
    case ErrorCode::not_directory:
      return ENOTDIR;
    case ErrorCode::is_directory:
      return EISDIR;
    case ErrorCode::not_empty:
      return ENOTEMPTY;
    case ErrorCode::name_too_long:
      return ENAMETOOLONG;
    case ErrorCode::no_attribute:
      return ENODATA;
    case ErrorCode::range:
      return ERANGE;
    case ErrorCode::too_big:
      return EFBIG;
    case ErrorCode::too_many_links:
      return EMLINK;
    case ErrorCode::no_position:
      return ENXIO;
    case ErrorCode::stale:
      return ESTALE;
  }
  return EIO;
}

int to_errno_of_xattr(ErrorCode code) {
  return code == ErrorCode::too_big ? E2BIG : to_errno(code);
}

bool is_fault(ErrorCode code) {
  return to_errno(code) == EIO;
}

void FaultLog::note(Volume& volume, std::string_view operation, metadata::InodeNumber inode,
                    const Error& error) noexcept try {
  if (!is_fault(error.code)) return;
  LockGuard lock(mutex_);
  if (!known_.emplace(inode.value, error.code).second) return;
  if (known_.size() > known_fault_count_max) known_.erase(known_.begin());
  const auto now = Clock::now();
  if (now - window_start_ > window) {
    if (suppressed_count_ > 0) {
      spdlog::error("{} more files had faults that were not logged", suppressed_count_);
    }
    window_start_ = now;
    window_count_ = 0;
    suppressed_count_ = 0;
  }
  if (window_count_ == faults_per_window_max) {
    ++suppressed_count_;
    return;
  }
  ++window_count_;
  const std::string number = fmt::format("(inode {})", inode.value);
  const std::string path = volume.shown_name(inode);
  spdlog::error("{} {}{}: {}: {}", operation, path == number ? "" : path + " ", number,
                to_string(error.code), error.message);
} catch (...) {
  // The fault cannot be logged, but the program still gets its errno.
}

}  // namespace nacre::fs
