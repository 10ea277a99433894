// SPDX-License-Identifier: Apache-2.0
// Rotation of a volume's keys: a new volume key and epoch at once, then everything that is there is
// sealed anew, then the old keys go. docs/SECURITY.md, "Rotation", argues the order:
//
//   1. the keyring with both keys is durable; then new things are sealed under the new epoch
//   2. the superblock is MACed under the new volume key
//   3. records: segments of older epochs are emptied, oldest first
//   4. db/: the log is switched, tables are compacted into new ones, the rest is sealed anew
//   5. nothing is left of an older epoch: looked up in every header
//   6. the keyring without the old keys is durable; then the process forgets them
//
// Each step may be repeated. Where a rotation stands follows from what is on disk, so one that was
// interrupted goes on wherever the volume is opened for writing next.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fs/mount/mounted.h"
#include "fs/rotation/epoch_walk.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/keys/keyring.h"
#include "metadata/keys/keyring_keeper.h"
#include "metadata/superblock.h"

namespace nacre::fs {

struct RotationOptions {
  // None: as the superblock says.
  std::optional<engine::CipherSuite> suite;
  std::optional<engine::Codec> codec;       // and all records are compressed anew with it
  int level = 0;                            // of that codec
  std::uint64_t rate_bytes_per_second = 0;  // see RekeyOrder
  // Moves a volume of format 1 to format 2. Otherwise the format stays the same, unless a move that
  // was interrupted before its keyring has left the feature in the superblock.
  bool to_format_2 = metadata::settled_format == metadata::EpochFormat::two;
  // Of whoever begins it, if there is one: in format 1 the MAC of its recipient is made at once.
  const SecretBytes* passphrase = nullptr;
  // In format 2 the recipients of these get the new volume key under their passphrases. All that
  // have no key pair must be among them.
  std::vector<metadata::RecipientSeal> seals;
};

enum class RotationState : std::uint8_t {
  none,
  running,
  paused,
  waiting,  // for space, for a backup to end
  damaged,  // all but what cannot be opened is done; the old keys stay
  stopped,  // by an error: until the next mount, or until it is resumed
};
std::string_view to_string(RotationState state);

struct RotationStatus {
  RotationState state = RotationState::none;
  std::string_view stage;  // "records", "database", "verification"; empty when none
  std::uint32_t epoch = 0;
  std::uint64_t done_bytes = 0;  // of records
  std::uint64_t total_bytes = 0;
  std::uint64_t bytes_per_second = 0;  // since it began or went on; 0: not known yet
  std::uint64_t damaged_segment_count = 0;
  std::string message;  // what it waits for, what stopped it
};

// Thread-safe.
class Rotation {
 public:
  // keys are those that the volume was opened with. Volume and keyring outlive this.
  Rotation(std::shared_ptr<metadata::BackingDirectory> directory,
           std::shared_ptr<metadata::KeyTree> keys, metadata::KeyringKeeper& keyring,
           Mounted& mounted);
  ~Rotation();  // stop()

  // Steps 1 and 2. busy: one is under way, or a backup. After another error one may have begun all
  // the same: status() tells, and it goes on as if nothing had happened.
  Result<> begin(const RotationOptions& options) NACRE_EXCLUDES(mutex_, work_mutex_);

  // Goes on to the end on this thread, as fast as it can unless a rate was asked for; nothing to do
  // is fine. progress may be empty. corrupt: the state damaged; cancelled after stop().
  using Progress = std::function<void(const RotationStatus&)>;
  Result<> run(const Progress& progress) NACRE_EXCLUDES(work_mutex_, mutex_);

  // The background thread: goes on with what is there, now and whenever one begins.
  void start() NACRE_EXCLUDES(mutex_);
  void stop() NACRE_EXCLUDES(mutex_);
  // Durable: a rotation that is paused stays so until it is resumed. not_found when there is none.
  Result<> pause() NACRE_EXCLUDES(mutex_);
  Result<> resume(std::optional<std::uint64_t> rate_bytes_per_second) NACRE_EXCLUDES(mutex_);

  RotationStatus status() const NACRE_EXCLUDES(mutex_);
  // Looks at every record and file: what is not of the current epoch. cancelled after stop().
  Result<EpochCounts> verify() const NACRE_EXCLUDES(mutex_);
  engine::Sha256Digest fingerprint() const { return keys_->fingerprint(); }
  // Of the current epoch.
  metadata::EpochFormat format() const { return keys_->current_epoch().format; }

 private:
  enum class Mode : std::uint8_t { background, full_speed };

  void run_background() NACRE_EXCLUDES(mutex_, work_mutex_);
  Result<> work(Mode mode) NACRE_REQUIRES(work_mutex_);
  Result<> settle_superblock() NACRE_REQUIRES(work_mutex_);
  Result<> renew_checkpoint() NACRE_REQUIRES(work_mutex_);
  Result<> rekey_records(Mode mode) NACRE_REQUIRES(work_mutex_);
  Result<> reseal_database() NACRE_REQUIRES(work_mutex_);
  Result<> settle() NACRE_REQUIRES(work_mutex_);
  Result<> finish() NACRE_REQUIRES(work_mutex_);
  Result<> repair_copies();
  // What a rotation begins with: the superblock that counts under the older key, and what the new
  // epoch is to be.
  struct BeforeRotation {
    engine::Sha256Digest superblock = {};
    engine::CipherSuite suite{};
    metadata::EpochFormat format = metadata::EpochFormat::one;  // not below that of the last one
  };
  Result<BeforeRotation> settle_before(const RotationOptions& options) NACRE_REQUIRES(work_mutex_);
  Result<> save_new_keyring(const RotationOptions& options, const BeforeRotation& before)
      NACRE_EXCLUDES(mutex_);
  struct LoadedSuperblock {
    metadata::Superblock superblock;
    engine::Sha256Digest digest = {};
    bool are_copies_equal = false;
  };
  Result<LoadedSuperblock> load_superblock() const;
  // The row of the table system; durable when remember() returns.
  Result<> remember(const metadata::RotationRow& row);
  Result<metadata::RotationRow> remembered() const;
  // cancelled when stopped or paused.
  Result<> go_on() NACRE_EXCLUDES(mutex_);
  Result<> wait(RotationState state, std::string message, std::chrono::milliseconds pause)
      NACRE_REQUIRES(work_mutex_) NACRE_EXCLUDES(mutex_);
  void enter(std::string_view stage) NACRE_REQUIRES(work_mutex_);
  void report_progress() NACRE_REQUIRES(work_mutex_);

  const std::shared_ptr<metadata::BackingDirectory> directory_;
  const std::shared_ptr<metadata::KeyTree> keys_;
  metadata::KeyringKeeper& keyring_;
  Mounted& mounted_;

  Mutex work_mutex_;  // one at a time begins, works or ends; before mutex_
  Progress progress_ NACRE_GUARDED_BY(work_mutex_);
  // Of the superblock that the volume was opened with, or that this has written since: nobody else
  // writes any. None where it could not be read again.
  std::optional<engine::Sha256Digest> known_superblock_ NACRE_GUARDED_BY(work_mutex_);

  mutable Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  bool begun_ NACRE_GUARDED_BY(mutex_) = false;  // the background has something to do
  metadata::RotationRow row_ NACRE_GUARDED_BY(mutex_);
  RotationState state_ NACRE_GUARDED_BY(mutex_) = RotationState::none;
  std::string_view stage_ NACRE_GUARDED_BY(mutex_);
  std::string message_ NACRE_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point since_ NACRE_GUARDED_BY(mutex_){};
  // Live bytes of older epochs at that moment.
  std::uint64_t left_then_ NACRE_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace nacre::fs
