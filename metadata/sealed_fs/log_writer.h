// SPDX-License-Identifier: Apache-2.0
// The write-ahead log that RocksDB writes to.
//
// RocksDB cannot go on from a log whose write failed: it stops, some of its paths abort the
// process, and a log that cannot be created is fatal to it. So a log takes everything that RocksDB
// appends, and does not report errors to it. Instead, settle() returns them. Database calls
// settle() after each write, before it reports a group as safe. The file system calls it before a
// manifest changes, so that no table counts as long as the log has not written its rows. After
// no_space, settle() can be called again later: the frames are still in memory. Any other error
// stops the whole file system (FailStop).
#pragma once

#include <atomic>
#include <memory>

#include "gpu_engine/base/mutex.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/manifest_state.h"

namespace nacre::metadata {

// Stops all writing for good. Thread-safe.
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
  // previous is the log before this one, which is made durable before this one's file is made. It
  // is null for the first log of a session; the witness then names the predecessor.
  LogWriter(std::shared_ptr<BackingDirectory> directory, FileSeal seal,
            std::shared_ptr<LogWriter> previous, const LogWitness& witness,
            std::shared_ptr<FailStop> fail_stop);
  // Makes the file unless it is there. After no_space, settle() and every other caller that needs
  // the file try again.
  Result<void> ensure_exists();

  // These do what FrameWriter does, but only settle() returns their errors.
  Result<void> append(ByteView bytes);
  Result<void> flush();
  Result<void> sync();
  Result<void> close();

  // Writes, and with sync also syncs, what is not written or synced yet. This log's predecessors
  // come first.
  Result<void> settle(bool sync);
  // Makes a witness durable: that logs up to done_log are of no use any more, and what the manifest
  // holds. An error other than no_space is final.
  Result<void> write_witness(std::uint64_t done_log, const ManifestState::Durable& manifest);
  std::uint64_t stored_bytes() const;
  std::uint64_t synced_frames() const;
  FrameTag synced_tag() const;
  ManifestLink name() const;  // its number and salt
  // The same as of ManifestWriter, for a switch of epochs. witness takes the place of each witness
  // that the log has.
  Result<FrameWriter::Replacement> make_resealed(BackingDirectory& directory, const KeyTree& keys,
                                                 FileSeal to, const LogWitness& witness);
  void replace(FrameWriter::Replacement replacement, const LogWitness& witness);
  LogWitness witness() const;  // the last one
  std::string path() const;

 private:
  Result<void> settle_previous() NACRE_REQUIRES(mutex_);
  Result<void> ensure_exists_locked() NACRE_REQUIRES(mutex_);
  Result<void> note(Result<void> result);  // stops the file system after any error except no_space

  const std::shared_ptr<FailStop> fail_stop_;
  mutable Mutex mutex_;  // a newer log's is locked before an older log's
  FrameWriter frames_ NACRE_GUARDED_BY(mutex_);
  // Kept until it is durable.
  std::shared_ptr<LogWriter> previous_ NACRE_GUARDED_BY(mutex_);
  LogWitness witness_ NACRE_GUARDED_BY(mutex_);
  // Whether the log has its first witness.
  bool has_witness_ NACRE_GUARDED_BY(mutex_) = false;
};

}  // namespace nacre::metadata
