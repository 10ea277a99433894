// SPDX-License-Identifier: Apache-2.0
// What RocksDB's own threads meet: after a flush of theirs found the disk full, they do nothing and
// every write fails until somebody resumes them, although there may be room again. So whoever
// writes next asks here first.
//
// Thread-safe.
#pragma once

#include <rocksdb/listener.h>

#include <atomic>

namespace nacre::metadata {

class BackgroundErrors final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* status) override {
    if (status->IsNoSpace()) met_no_space_ = true;
  }
  bool met_no_space() const { return met_no_space_; }
  // Before resuming: what goes wrong from then on counts anew.
  void clear() { met_no_space_ = false; }
  void note_no_space() { met_no_space_ = true; }

 private:
  std::atomic<bool> met_no_space_{false};
};

}  // namespace nacre::metadata
