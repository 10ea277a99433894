// SPDX-License-Identifier: Apache-2.0
// What is durable of the manifest that CURRENT names: the part of a log's witness that the log does
// not know itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "gpu_engine/base/mutex.h"
#include "metadata/sealed_fs/frame_file.h"

namespace nacre::metadata {

// Follows RocksDB: a manifest is written and synced, CURRENT renamed into place, the folder synced.
// Thread-safe.
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
  // A write of that manifest failed, so it may hold what RocksDB takes for lost.
  void write_failed(std::uint64_t number);
  // Until a newer manifest is durable, whatever the failed one may name must stay.
  bool may_name_lost_tables() const;

 private:
  mutable Mutex mutex_;
  // The manifests of this session.
  std::map<std::uint64_t, Durable> synced_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t renamed_ NACRE_GUARDED_BY(mutex_) = 0;  // what CURRENT names, durably or not
  std::uint64_t durable_ NACRE_GUARDED_BY(mutex_) = 0;
  std::uint64_t failed_ NACRE_GUARDED_BY(mutex_) = 0;  // the newest whose write failed; 0: none
};

// A manifest as RocksDB writes it. Once a write has failed, nothing of it is written any more, when
// it is closed either: RocksDB begins another and has removed what this one was to name.
// Thread-safe.
class ManifestWriter {
 public:
  ManifestWriter(std::unique_ptr<FrameWriter> frames, std::uint64_t number,
                 std::shared_ptr<ManifestState> state)
      : frames_(std::move(frames)), number_(number), state_(std::move(state)) {}
  Result<void> append(ByteView bytes);
  Result<void> flush();
  Result<void> sync();
  Result<void> close();
  // Seals the file anew under the current epoch, if it is of an older one, and goes on there. link:
  // to the newest log, which no other may follow meanwhile.
  // replaced: the file under the name is another one now, and the folder must be synced before
  // anything else happens; called under the lock.
  Result<void> reseal(BackingDirectory& directory, const KeyTree& keys, engine::Padding padding,
                      const ManifestLink& link, const std::function<Result<void>()>& replaced);
  // The two halves of that for a switch of epochs (epoch_switch.h), between which nobody writes:
  // the file under resealed_path(), and going on there once it is under its name, durably so.
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
