// SPDX-License-Identifier: Apache-2.0
// What RocksDB's own threads meet when the disk is full.
#include "metadata/tables/background_errors.h"

namespace nacre::metadata {
namespace {

// RocksDB tells of a manifest that could not be written without saying for what. Threads that
// compact do not flush.
thread_local bool compacts = false;

bool is_of_compaction(rocksdb::BackgroundErrorReason reason) {
  using Reason = rocksdb::BackgroundErrorReason;
  return reason == Reason::kCompaction ||
         (compacts && (reason == Reason::kManifestWrite || reason == Reason::kManifestWriteNoWAL));
}

}  // namespace

void BackgroundErrors::clear() {
  const std::lock_guard lock(mutex_);
  met_no_space_ = false;
  compaction_failed_ = false;
}

bool BackgroundErrors::begin_flush() {
  const std::lock_guard lock(mutex_);
  if (compaction_failed_) return false;
  is_flushing_ = true;
  return true;
}

void BackgroundErrors::end_flush() {
  {
    const std::lock_guard lock(mutex_);
    is_flushing_ = false;
  }
  flush_ended_.notify_all();
}

bool BackgroundErrors::compaction_failed() const {
  const std::lock_guard lock(mutex_);
  return compaction_failed_;
}

void BackgroundErrors::OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo&) {
  compacts = true;
}

void BackgroundErrors::OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                                         rocksdb::Status* status) {
  // A soft error of a compaction stops nothing when it is left out; RocksDB tries again by itself.
  if (reason == rocksdb::BackgroundErrorReason::kCompaction && status->IsNoSpace() &&
      status->severity() <= rocksdb::Status::Severity::kSoftError) {
    *status = rocksdb::Status::OK();
    return;
  }
  if (is_of_compaction(reason)) {
    std::unique_lock lock(mutex_);
    flush_ended_.wait(lock, [this] { return !is_flushing_; });
    compaction_failed_ = true;
  }
  if (status->IsNoSpace()) met_no_space_ = true;
}

}  // namespace nacre::metadata
