// SPDX-License-Identifier: Apache-2.0
// The write-ahead log as RocksDB sees it while it writes.
//
// RocksDB cannot go on from a log whose write failed: it stops, some of its paths abort the
// process, and a log that cannot be created is fatal to it. So a log takes everything RocksDB
// appends and keeps errors to itself. Instead, settle() is asked: by Database after each write,
// before it tells anybody that a group is safe; and by the file system before a manifest changes,
// so that no table counts whose rows the log still owes. With no_space it can be asked again later:
// the frames are still here. Any other error stops the whole file system (FailStop).
#pragma once

#include <atomic>
#include <memory>

#include "gpu_engine/base/mutex.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/manifest_state.h"

namespace nacre::metadata {

// Once stopped, stopped for good. Thread-safe.
class FailStop {
 public:
  void stop(const Error& error);
  Result<void> check() const;

 private:
  std::atomic<bool> stopped_{false};
  mutable Mutex mutex_;
  std::optional<Error> error_ NACRE_GUARDED_BY(mutex_);
};

// Thread-safe.
class LogWriter {
 public:
  // previous: the log before this one, made durable before this one's file is made; null for the
  // first one of a session, whose witness names its predecessor then.
  LogWriter(std::shared_ptr<BackingDirectory> directory, FileSeal seal,
            std::shared_ptr<LogWriter> previous, const LogWitness& witness,
            std::shared_ptr<FailStop> fail_stop);
  // Makes the file unless it is there. After no_space, settle() and whoever needs it try again.
  Result<void> ensure_exists();

  // What FrameWriter does, but errors show in settle() alone.
  Result<void> append(ByteView bytes);
  Result<void> flush();
  Result<void> sync();
  Result<void> close();

  // Writes (and syncs) what is not yet written (or synced), this log's predecessors first.
  Result<void> settle(bool sync);
  // Makes durable that logs up to done_log are of no use any more, and what the manifest holds. An
  // error other than no_space is final.
  Result<void> write_witness(std::uint64_t done_log, const ManifestState::Durable& manifest);
  std::uint64_t stored_bytes() const;
  std::uint64_t synced_frames() const;
  FrameTag synced_tag() const;
  ManifestLink name() const;  // its number and salt
  // As ManifestWriter's: for a switch of epochs. witness: what each of the log's says from then on.
  Result<FrameWriter::Replacement> make_resealed(BackingDirectory& directory, const KeyTree& keys,
                                                 FileSeal to, const LogWitness& witness);
  void replace(FrameWriter::Replacement replacement, const LogWitness& witness);
  LogWitness witness() const;  // the last one
  std::string path() const;

 private:
  Result<void> settle_previous() NACRE_REQUIRES(mutex_);
  Result<void> ensure_exists_locked() NACRE_REQUIRES(mutex_);
  Result<void> note(Result<void> result);  // stops the file system unless it is no_space

  const std::shared_ptr<FailStop> fail_stop_;
  mutable Mutex mutex_;  // of a newer log before that of an older one
  FrameWriter frames_ NACRE_GUARDED_BY(mutex_);
  std::shared_ptr<LogWriter> previous_ NACRE_GUARDED_BY(mutex_);  // until it is durable
  LogWitness witness_ NACRE_GUARDED_BY(mutex_);
  bool has_witness_ NACRE_GUARDED_BY(mutex_) = false;  // the log begins with one
};

}  // namespace nacre::metadata
