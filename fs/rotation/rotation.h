// SPDX-License-Identifier: Apache-2.0
// Rotation of a volume's keys: a new volume key and epoch come into use at once, then everything is
// sealed again, then the old keys go. docs/SECURITY.md, "Rotation", explains the order:
//
//   0. To an epoch of format 2: the digest of each record is put into a row, while the volume is
//      used (genuine_records.h). If the volume is closed meanwhile, no rotation began.
//   1. The keyring with both keys is made durable. New data is then sealed under the new epoch.
//   2. The superblock gets a MAC under the new volume key.
//   3. Records: segments of older epochs are emptied, the oldest first.
//   4. db/: the log is switched, tables are compacted into new ones, the rest is sealed again.
//   5. Every header is read, to check that nothing is left of an older epoch.
//   6. The keyring without the old keys is made durable. Then the process forgets them,
//      and the digests of records under them (genuine_records.h) are removed.
//
// Each step may be repeated. The progress of a rotation follows from what is on disk, so an
// interrupted one goes on when the volume is next opened for writing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fs/mount/mounted.h"
#include "fs/rotation/epoch_walk.h"
#include "fs/store/genuine_records.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/keys/keyring.h"
#include "metadata/keys/keyring_keeper.h"
#include "metadata/keys/keyring_rotation.h"
#include "metadata/superblock.h"

namespace nacre::fs {

struct RotationOptions {
  // None: the suite in the superblock.
  std::optional<engine::CipherSuite> suite;
  // If set, all records are compressed again with this codec.
  std::optional<engine::Codec> codec;
  int level = 0;                            // the level of that codec
  std::uint64_t rate_bytes_per_second = 0;  // see RekeyOrder
  // Moves a volume of format 1 to format 2. Otherwise the format stays the same. The exception is
  // an earlier move that was interrupted before its keyring was written, and left the feature in
  // the superblock.
  bool to_format_2 = metadata::settled_format == metadata::EpochFormat::two;
  // The passphrase of the user who begins the rotation, if there is one. In format 1 it serves to
  // make the MAC of that user's recipient at once.
  const SecretBytes* passphrase = nullptr;
  // In format 2 these recipients get the new volume key under their passphrases. All recipients
  // without a key pair must be among them.
  std::vector<metadata::RecipientSeal> seals;
  // In format 2: begins although records of files cannot be read now. They get no digest, so from
  // then on they count as damaged, also if the medium reads them later.
  bool accept_unreadable = false;
};

enum class RotationState : std::uint8_t {
  none,
  running,
  paused,
  waiting,  // for space, or for the end of a backup
  // All is done except for records that cannot be opened. The old keys stay.
  damaged,
  // Stopped by an error, until the next mount or until it is resumed.
  stopped,
};
std::string_view to_string(RotationState state);

struct RotationStatus {
  RotationState state = RotationState::none;
  // "survey", "records", "database", "verification"; or empty
  std::string_view stage;
  // Whether the keys are being rotated, or a survey precedes that. Otherwise the state says how the
  // last try ended.
  bool is_under_way = false;
  std::uint32_t epoch = 0;
  std::uint64_t done_bytes = 0;  // bytes of records; in a survey those that were read
  std::uint64_t total_bytes = 0;
  std::uint64_t bytes_per_second = 0;  // since it began or was resumed; 0: not known yet
  std::uint64_t damaged_segment_count = 0;
  std::string message;  // the reason for waiting or stopping
};

// Thread-safe.
class Rotation {
 public:
  // keys are those with which the volume was opened. Volume and keyring outlive this object.
  Rotation(std::shared_ptr<metadata::BackingDirectory> directory,
           std::shared_ptr<metadata::KeyTree> keys, metadata::KeyringKeeper& keyring,
           Mounted& mounted);
  ~Rotation();  // stop()
  // Called before anything else, and at most once. next runs before the keyring with the new key is
  // written, and gets the keys that it brings. It must be done with what a crash behind it needs.
  // Writing may fail, so the keys may never come.
  using NextKeys = std::function<void(const metadata::KeyTree& next)>;
  void before_new_key(NextKeys next) { before_new_key_ = std::move(next); }
  // Called before anything else, and at most once. known runs when a new key has become durable, on
  // the thread that begins the rotation: in the background no command waits for the fingerprint.
  void on_new_key(std::function<void()> known) { new_key_is_known_ = std::move(known); }

  // Steps 0 to 2, on this thread. A survey reads as fast as it can, whatever the rate is. Error:
  // busy if a rotation or a backup is under way; io if records of files cannot be read; cancelled
  // after stop(). After another error the rotation may have begun in spite of it; status() tells,
  // and it then goes on as usual. progress is called during the survey, and may be empty.
  using Progress = std::function<void(const RotationStatus&)>;
  Result<> begin(const RotationOptions& options, const Progress& progress = {})
      NACRE_EXCLUDES(mutex_, work_mutex_);
  // The same, but leaves a survey and all that follows to the background thread, which must run.
  // Returns true if there is a survey; then status() tells how it ends. If there is none, the keys
  // are those of the new epoch when this returns.
  Result<bool> begin_in_background(RotationOptions options) NACRE_EXCLUDES(mutex_, work_mutex_);

  // Goes on to the end on this thread, as fast as it can unless a rate was set. It is no error if
  // there is nothing to do. progress may be empty. Errors: corrupt in the state damaged; cancelled
  // after stop().
  Result<> run(const Progress& progress) NACRE_EXCLUDES(work_mutex_, mutex_);

  // The background thread. It goes on with an existing rotation, and with any that begins later.
  void start() NACRE_EXCLUDES(mutex_);
  void stop() NACRE_EXCLUDES(mutex_);
  // Both are durable: a paused rotation stays paused until it is resumed. A survey may be paused,
  // too, but it ends with the mount. Error: not_found if there is none.
  Result<> pause() NACRE_EXCLUDES(mutex_);
  Result<> resume(std::optional<std::uint64_t> rate_bytes_per_second) NACRE_EXCLUDES(mutex_);

  RotationStatus status() const NACRE_EXCLUDES(mutex_);
  // Looks at every record and file, and counts those that are not of the current epoch. Error:
  // cancelled after stop().
  Result<EpochCounts> verify() const NACRE_EXCLUDES(mutex_);
  engine::Sha256Digest fingerprint() const { return keys_->fingerprint(); }
  // The format of the current epoch.
  metadata::EpochFormat format() const { return keys_->current_epoch().format; }

 private:
  enum class Mode : std::uint8_t { background, full_speed };

  Result<> check_not_read_only() const;
  Result<> check_none() const NACRE_EXCLUDES(mutex_);
  Result<> check_can_begin() NACRE_REQUIRES(work_mutex_);
  Result<> begin_locked(const RotationOptions& options, Mode mode) NACRE_REQUIRES(work_mutex_)
      NACRE_EXCLUDES(mutex_);
  // The part of begin_in_background() that runs on the background thread.
  void begin_asked() NACRE_EXCLUDES(mutex_, work_mutex_);

  // rotation_survey.cpp
  class Survey;
  Result<> survey(const RotationOptions& options, Mode mode) NACRE_REQUIRES(work_mutex_)
      NACRE_EXCLUDES(mutex_);
  Result<> survey_named(GenuineRecords& genuine, const SurveyOrder& order, Survey& survey)
      NACRE_REQUIRES(work_mutex_) NACRE_EXCLUDES(mutex_);
  Result<> judge_unread(const Survey& survey, bool is_accepted);
  Result<std::vector<std::uint64_t>> named_places(metadata::SegmentNumber segment);
  // outcome: of all that begin_locked() did to change the keys.
  void end_survey(const Result<>& outcome) NACRE_REQUIRES(work_mutex_) NACRE_EXCLUDES(mutex_);
  Result<> note_surveyed(std::uint64_t bytes, Mode mode, Survey& survey) NACRE_REQUIRES(work_mutex_)
      NACRE_EXCLUDES(mutex_);

  void run_background() NACRE_EXCLUDES(mutex_, work_mutex_);
  Result<> work(Mode mode) NACRE_REQUIRES(work_mutex_);
  Result<> settle_superblock() NACRE_REQUIRES(work_mutex_);
  Result<> renew_checkpoint() NACRE_REQUIRES(work_mutex_);
  Result<> rekey_records(Mode mode) NACRE_REQUIRES(work_mutex_);
  Result<> reseal_database() NACRE_REQUIRES(work_mutex_);
  Result<> settle() NACRE_REQUIRES(work_mutex_);
  Result<> finish() NACRE_REQUIRES(work_mutex_);
  Result<> forget_digests() NACRE_REQUIRES(work_mutex_);
  Result<> repair_copies();
  // The state in which a rotation begins: the superblock that is valid under the older key, and the
  // properties of the new epoch.
  struct BeforeRotation {
    engine::Sha256Digest superblock = {};
    engine::CipherSuite suite{};
    metadata::EpochFormat format = metadata::EpochFormat::one;  // not below that of the last epoch
  };
  Result<BeforeRotation> settle_before(const RotationOptions& options) NACRE_REQUIRES(work_mutex_);
  // Checks what settle_before() and the keyring need, and changes nothing. Returns the format of
  // the next epoch.
  Result<metadata::EpochFormat> check_before(const RotationOptions& options)
      NACRE_REQUIRES(work_mutex_);
  Result<> save_new_keyring(const RotationOptions& options, const BeforeRotation& before,
                            const metadata::NextKeys& secrets) NACRE_EXCLUDES(mutex_);
  // The secrets of the next epoch, whose suite and format options and superblock say.
  Result<metadata::NextKeys> draw_keys(const RotationOptions& options) NACRE_REQUIRES(work_mutex_);
  // Seals the database's tables for that epoch, while it is used.
  Result<> prepare_database(const metadata::NextKeys& secrets) NACRE_REQUIRES(work_mutex_);
  struct LoadedSuperblock {
    metadata::Superblock superblock;
    engine::Sha256Digest digest = {};
    bool are_copies_equal = false;
  };
  Result<LoadedSuperblock> load_superblock() const;
  Result<> check_is_known(const LoadedSuperblock& loaded) const NACRE_REQUIRES(work_mutex_);
  // Writes the row of the table system. It is durable when remember() returns.
  Result<> remember(const metadata::RotationRow& row);
  Result<metadata::RotationRow> remembered() const;
  // Error: cancelled if stopped or paused.
  Result<> go_on() NACRE_EXCLUDES(mutex_);
  Result<> wait(RotationState state, std::string message, std::chrono::milliseconds pause)
      NACRE_REQUIRES(work_mutex_) NACRE_EXCLUDES(mutex_);
  void enter(std::string_view stage) NACRE_REQUIRES(work_mutex_);
  void report_progress() NACRE_REQUIRES(work_mutex_);

  const std::shared_ptr<metadata::BackingDirectory> directory_;
  NextKeys before_new_key_;                 // may be empty
  std::function<void()> new_key_is_known_;  // may be empty
  const std::shared_ptr<metadata::KeyTree> keys_;
  metadata::KeyringKeeper& keyring_;
  Mounted& mounted_;

  // One thread at a time begins, works or ends. Locked before mutex_.
  Mutex work_mutex_;
  Progress progress_ NACRE_GUARDED_BY(work_mutex_);
  // The digest of the superblock with which the volume was opened, or that this object has written
  // since. No other writer exists. None if it could not be read again.
  std::optional<engine::Sha256Digest> known_superblock_ NACRE_GUARDED_BY(work_mutex_);

  mutable Mutex mutex_;
  ConditionVariable wake_;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  // The background thread has something to do.
  bool begun_ NACRE_GUARDED_BY(mutex_) = false;
  metadata::RotationRow row_ NACRE_GUARDED_BY(mutex_);
  RotationState state_ NACRE_GUARDED_BY(mutex_) = RotationState::none;
  std::string_view stage_ NACRE_GUARDED_BY(mutex_);
  std::string message_ NACRE_GUARDED_BY(mutex_);
  // Asked for, and not begun yet.
  std::optional<RotationOptions> asked_ NACRE_GUARDED_BY(mutex_);
  // From begin() to the new keyring, if a survey precedes that.
  bool is_surveying_ NACRE_GUARDED_BY(mutex_) = false;
  std::uint64_t surveyed_bytes_ NACRE_GUARDED_BY(mutex_) = 0;
  std::uint64_t survey_bytes_ NACRE_GUARDED_BY(mutex_) = 0;
  std::chrono::steady_clock::time_point since_ NACRE_GUARDED_BY(mutex_){};
  // Live bytes of older epochs at that moment.
  std::uint64_t left_then_ NACRE_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace nacre::fs
