// SPDX-License-Identifier: Apache-2.0
// All that a mount has of its volume only while it has the keys: the keys themselves, the parts
// that run beneath the file system's calls, scrub and rotation, and what tells witnesses how far
// the volume has come. When it is destroyed, none of this is left in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "fs/fuse/served_volume.h"
#include "fs/mount/mounted.h"
#include "fs/rotation/rotation.h"
#include "fs/scrub/scrubber.h"
#include "metadata/keys/keyring_keeper.h"
#include "metadata/volume_files.h"
#include "tools/cli/outside_witness.h"
#include "tools/cli/volume_access.h"
#include "tools/mount/age_keeper.h"
#include "tools/mount/mount_plan.h"

namespace nacre::tools {

// A volume that was locked, as it is to be found again. It holds no secrets.
struct LockedState {
  fs::KernelKnowledge knowledge;
  engine::Sha256Digest fingerprint = {};
  std::uint64_t keyring_generation = 0;
  // None if the volume was not closed well: an opening then recovers it. Also none once an opening
  // has begun to change the volume: if that failed, the memories of its age are what is asked.
  std::optional<metadata::VolumeAge> age;
};

// Thread-safe after open(), as the parts are.
class OpenVolume {
 public:
  // plan and place outlive it. If locked is given, the volume must be that one and in that state.
  // Errors: rolled_back or not_permitted if it is older than it was; those of fs::Mounted::open().
  static Result<std::unique_ptr<OpenVolume>> open(const MountPlan& plan, const VolumePlace& place,
                                                  metadata::VolumeKeys keys, bool may_name_files,
                                                  LockedState* locked = nullptr);
  OpenVolume(const OpenVolume&) = delete;
  OpenVolume& operator=(const OpenVolume&) = delete;

  fs::Mounted& mounted() { return *mounted_; }
  metadata::KeyringKeeper& keyring() { return *keyring_; }
  fs::Rotation& rotation() { return *rotation_; }
  fs::Scrubber& scrubber() { return *scrubber_; }
  const metadata::Superblock& superblock() const { return keys_.superblock; }
  fs::ServedVolume served();

  // Goes on with the scrub and the rotation that an earlier opening left.
  void start_work();
  // Ends them, and a trim that is under way.
  void stop_work();
  // Commits everything, and tells the witnesses. Called after stop_work(), when nobody uses the
  // parts any more, as the last call. If locked is given, it gets what a later open() needs.
  Result<> close(LockedState* locked = nullptr);

 private:
  OpenVolume(const MountPlan& plan, const VolumePlace& place, metadata::VolumeKeys keys)
      : plan_(plan), place_(place), keys_(std::move(keys)) {}
  Result<> open_parts(bool may_name_files, LockedState* locked);
  Result<> check_unchanged(const metadata::Database& database, const LockedState& locked) const;
  void keep_age();
  void mend_keyring();
  void note_age(const metadata::VolumeAge& age, Witness::Moment moment) const;
  bool note_age_outside(const metadata::VolumeAge& age, Witness::Moment moment);
  void tell_of_foreign_root();

  const MountPlan& plan_;
  const VolumePlace& place_;
  metadata::VolumeKeys keys_;
  std::unique_ptr<fs::Mounted> mounted_;
  std::optional<metadata::KeyringKeeper> keyring_;
  std::optional<OutsideWitness> outside_;
  bool outside_is_behind_ = false;  // outside_keeper_'s thread's, while there is one
  std::optional<AgeKeeper> age_keeper_;
  std::optional<AgeKeeper> outside_keeper_;
  std::unique_ptr<fs::Rotation> rotation_;
  std::unique_ptr<fs::Scrubber> scrubber_;
};

}  // namespace nacre::tools
