// SPDX-License-Identifier: Apache-2.0
// The volume of a mount, which can be locked: it is closed as by an unmount, and its keys and all
// plaintext leave the memory of this process, while the mount and the lock on the volume's
// directory stay. Unlocking opens it anew behind the same connection to the kernel. What stays in
// memory are numbers: of the inodes that the kernel knows, and of the state in which the volume
// must be found again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fs/fuse/fuse_session.h"
#include "gpu_engine/base/mutex.h"
#include "tools/mount/open_volume.h"

namespace nacre::tools {

// Thread-safe, except as noted.
class LockableVolume {
 public:
  // plan and place outlive it, and so does the session that attach() gets.
  LockableVolume(const MountPlan& plan, const VolumePlace& place, bool may_name_files)
      : plan_(plan), place_(place), may_name_files_(may_name_files) {}

  // Opens it for the first time.
  Result<> open(metadata::VolumeKeys keys) NACRE_EXCLUDES(mutex_);
  void attach(fs::FuseSession& session) { session_ = &session; }

  // Keeps the volume open while it lives.
  class Use {
   public:
    Use(Use&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    ~Use();
    OpenVolume* operator->() const { return owner_->volume_.get(); }
    OpenVolume& operator*() const { return *owner_->volume_; }

   private:
    friend class LockableVolume;
    explicit Use(LockableVolume& owner) : owner_(&owner) {}
    LockableVolume* owner_;
  };
  // Errors: not_permitted if it is locked; busy if it is just being locked or unlocked.
  Result<Use> use() NACRE_EXCLUDES(mutex_);
  // For a caller that holds a Use, and until the session has ended.
  OpenVolume& opened() { return *volume_; }

  bool is_locked() const NACRE_EXCLUDES(mutex_);
  // Also while it is locked.
  std::uint64_t keyring_generation() NACRE_EXCLUDES(mutex_);

  // Returns false if it was locked already. Errors: busy if a command or a backup is at work;
  // cancelled; those of the commit, after which the volume is not locked.
  Result<bool> lock() NACRE_EXCLUDES(mutex_);
  // Opens it with the volume key. Returns false if it was not locked. After an error it is locked
  // still. Errors: tampered or not_permitted if it is another volume; rolled_back if it is not in
  // the state in which it was locked; those of opening a volume.
  Result<bool> unlock(ByteView volume_key) NACRE_EXCLUDES(mutex_);

  // At the end of the mount, when nothing else calls this object. If it is locked, only says how it
  // was closed.
  Result<> close() NACRE_EXCLUDES(mutex_);

 private:
  enum class State : std::uint8_t { open, changing, locked };

  std::string where() const;
  // Waits until nobody uses the volume, and keeps new users away.
  Result<> begin_locking() NACRE_EXCLUDES(mutex_);
  void settle(State state) NACRE_EXCLUDES(mutex_);
  Result<> close_for_lock();
  Result<std::unique_ptr<OpenVolume>> open_again(ByteView volume_key);

  const MountPlan& plan_;
  const VolumePlace& place_;
  const bool may_name_files_;
  fs::FuseSession* session_ = nullptr;

  mutable Mutex mutex_;
  ConditionVariable unused_;
  State state_ NACRE_GUARDED_BY(mutex_) = State::open;
  std::uint64_t use_count_ NACRE_GUARDED_BY(mutex_) = 0;
  // Changed only in State::changing, by the thread that made the state so.
  std::unique_ptr<OpenVolume> volume_;
  LockedState locked_;
  Result<> last_close_;
};

}  // namespace nacre::tools
