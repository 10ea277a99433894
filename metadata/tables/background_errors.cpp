// SPDX-License-Identifier: Apache-2.0
// Tracks the errors of RocksDB's own threads on a full disk.
#include "metadata/tables/background_errors.h"

namespace nacre::metadata {
namespace {

// RocksDB reports a failed write of a manifest without the operation that wrote it. Threads that
// compact never flush, so the calling thread shows whether it was a compaction.
thread_local std::optional<std::uint64_t> compacted;

bool is_of_compaction(rocksdb::BackgroundErrorReason reason) {
  using Reason = rocksdb::BackgroundErrorReason;
  return reason == Reason::kCompaction ||
         (compacted && (reason == Reason::kManifestWrite || reason == Reason::kManifestWriteNoWAL));
}

}  // namespace

std::optional<std::uint64_t> BackgroundErrors::compacted_bytes() {
  return compacted;
}

bool BackgroundErrors::has_error() const {
  const LockGuard lock(mutex_);
  return has_stopped_ || met_no_space_;
}

bool BackgroundErrors::begin_resume(bool waited) {
  const LockGuard lock(mutex_);
  if (has_stopped_ && !waited) return false;
  has_stopped_ = false;
  met_no_space_ = false;
  is_resuming_ = true;
  return true;
}

void BackgroundErrors::end_resume(bool succeeded) {
  const LockGuard lock(mutex_);
  is_resuming_ = false;
  if (!succeeded) met_no_space_ = true;
}

bool BackgroundErrors::begin_flush() {
  const LockGuard lock(mutex_);
  if (has_stopped_) return false;
  is_flushing_ = true;
  return true;
}

void BackgroundErrors::end_flush() {
  {
    const LockGuard lock(mutex_);
    is_flushing_ = false;
  }
  flush_ended_.notify_all();
}

bool BackgroundErrors::has_stopped() const {
  const LockGuard lock(mutex_);
  return has_stopped_;
}

void BackgroundErrors::OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) {
  std::uint64_t bytes = 0;
  for (const std::string& path : job.input_files)
    bytes += file_size_(path);
  compacted = bytes;
}

void BackgroundErrors::OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                                         rocksdb::Status* status) {
  using Severity = rocksdb::Status::Severity;
  bool is_hard = status->severity() >= Severity::kHardError;
  UniqueLock lock(mutex_);
  // A soft error of a compaction is hidden, so it stops nothing. RocksDB tries again by itself.
  if (!is_hard && reason == rocksdb::BackgroundErrorReason::kCompaction && status->IsNoSpace()) {
    if (!is_resuming_) {
      *status = rocksdb::Status::OK();
      return;
    }
    *status = rocksdb::Status(*status, Severity::kHardError);
    is_hard = true;
  }
  if (is_of_compaction(reason))
    flush_ended_.wait(lock, [this]() NACRE_REQUIRES(mutex_) { return !is_flushing_; });
  if (is_hard) has_stopped_ = true;
  if (status->IsNoSpace()) met_no_space_ = true;
}

}  // namespace nacre::metadata
