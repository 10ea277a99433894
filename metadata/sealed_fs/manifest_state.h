// SPDX-License-Identifier: Apache-2.0
// Tracks how much of the manifest that CURRENT names is durable: the part of a log's witness that
// the log does not know itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "gpu_engine/base/mutex.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

// Follows what RocksDB does: it writes and syncs a manifest, renames CURRENT into place, and syncs
// the folder. Thread-safe.
class ManifestState {
 public:
  struct Durable {
    std::uint64_t number = 0;  // 0: none yet
    std::uint64_t frames = 0;
    FileSalt salt = {};
    FrameTag tag = {};  // of the last of these frames
    void write_to(LogWitness& witness) const;
  };
  void set(const Durable& durable);
  void manifest_synced(const Durable& synced);  // whether or not CURRENT names it
  void current_renamed();
  void folder_synced();
  Durable durable() const;
  // Notes that a write of that manifest failed, so it may hold edits that RocksDB takes for lost.
  void write_failed(std::uint64_t number);
  // Whether a manifest whose write failed may still count. Until a newer manifest is durable, every
  // table that the failed one may name must stay.
  bool may_name_lost_tables() const;

 private:
  mutable Mutex mutex_;
  // The manifests of this session, by number.
  std::map<std::uint64_t, Durable> synced_ NACRE_GUARDED_BY(mutex_);
  // The number that CURRENT names, durably or not.
  std::uint64_t renamed_ NACRE_GUARDED_BY(mutex_) = 0;
  std::uint64_t durable_ NACRE_GUARDED_BY(mutex_) = 0;
  // The newest manifest whose write failed; 0: none.
  std::uint64_t failed_ NACRE_GUARDED_BY(mutex_) = 0;
};

// The manifest that RocksDB writes to. After a write has failed, nothing more of it is written, not
// even when it is closed: RocksDB begins another manifest and has removed the tables that this one
// was to name. Thread-safe.
class ManifestWriter {
 public:
  ManifestWriter(std::unique_ptr<FrameWriter> frames, std::uint64_t number,
                 std::shared_ptr<ManifestState> state)
      : frames_(std::move(frames)), number_(number), state_(std::move(state)) {}
  Result<void> append(ByteView bytes);
  Result<void> flush();
  Result<void> sync();
  Result<void> close();
  // Seals the file anew under the current epoch, if it is of an older one, and continues in the new
  // file. link is to the newest log, and no other log may be made meanwhile. replaced is called
  // under the lock when the name leads to the new file; it must sync the folder before anything
  // else happens.
  Result<void> reseal(BackingDirectory& directory, const KeyTree& keys, engine::Padding padding,
                      const ManifestLink& link, const std::function<Result<void>()>& replaced);
  // The two halves of reseal() for a switch of epochs (epoch_switch.h), between which no thread may
  // write: the first makes the file under resealed_path(), and the second continues in it once it
  // has its name, durably.
  Result<FrameWriter::Replacement> make_resealed(BackingDirectory& directory, const KeyTree& keys,
                                                 FileSeal to, const ManifestLink& link);
  void replace(FrameWriter::Replacement replacement);
  std::uint64_t number() const { return number_; }

 private:
  Result<void> note(Result<void> written) NACRE_REQUIRES(mutex_);
  void note_synced() NACRE_REQUIRES(mutex_);

  Mutex mutex_;
  std::unique_ptr<FrameWriter> frames_ NACRE_GUARDED_BY(mutex_);
  bool has_failed_ NACRE_GUARDED_BY(mutex_) = false;
  const std::uint64_t number_;
  std::shared_ptr<ManifestState> state_;
};

}  // namespace nacre::metadata
