// SPDX-License-Identifier: Apache-2.0
#include "tools/mount/open_volume.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "metadata/keys/keyring_recipients.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/volume_age_check.h"

namespace nacre::tools {

namespace {

// How often a witness elsewhere is told at most. It may be on a slow disk or a server.
constexpr std::chrono::milliseconds outside_interval{60'000};

}  // namespace

Result<std::unique_ptr<OpenVolume>> OpenVolume::open(const MountPlan& plan,
                                                     const VolumePlace& place,
                                                     metadata::VolumeKeys keys, bool may_name_files,
                                                     LockedState* locked) {
  std::unique_ptr<OpenVolume> volume(new OpenVolume(plan, place, std::move(keys)));
  NACRE_TRY(volume->open_parts(may_name_files, locked));
  return volume;
}

Result<> OpenVolume::open_parts(bool may_name_files, LockedState* locked) {
  fs::VolumeOptions options = plan_.volume_options;
  options.may_name_files = may_name_files;
  options.store.chunk_size_bytes = keys_.superblock.chunk_size_bytes;
  options.store.codec = keys_.superblock.codec;
  options.store.level = keys_.superblock.level;
  options.store.padding = keys_.superblock.padding;
  options.superblock_generation = metadata::generation_to_note(keys_.superblock);
  NACRE_ASSIGN(auto engine,
               engine::Engine::create(engine_options(
                   plan_.engine, [](std::string_view text) { spdlog::warn("{}", text); })));
  NACRE_ASSIGN(outside_, open_outside_witness(plan_.witness, keys_, [](std::string_view text) {
                 spdlog::warn("{}", text);
               }));
  OutsideWitness* const outside = outside_ ? &*outside_ : nullptr;
  // That an older state was accepted for the mount says nothing of one that came while it was
  // locked.
  SecretOptions secret = plan_.secret;
  secret.accept_older_state = secret.accept_older_state && locked == nullptr;
  if (!options.read_only) NACRE_TRY(check_age_beforehand(place_, keys_, secret, outside));
  options.accept = [&](const metadata::Database& database) -> Result<> {
    if (locked != nullptr) NACRE_TRY(check_unchanged(database, *locked));
    NACRE_TRY(check_age(place_, keys_, database, secret, outside));
    if (locked != nullptr) locked->age.reset();
    return {};
  };
  if (locked != nullptr) options.knowledge = &locked->knowledge;
  auto mounted = fs::Mounted::open(place_.directory, keys_.keys, keys_.keyring.generation,
                                   std::move(engine), options);
  if (!mounted) return add_context(mounted.error(), place_.path);
  mounted_ = std::move(*mounted);
  keyring_.emplace(place_.directory, keys_.keys, keys_.keyring, [this](std::uint64_t generation) {
    return mounted_->note_keyring_generation(generation);
  });
  if (!options.read_only) {
    settle_next_key(place_, *keys_.keys);
    mend_keyring();
    keep_age();
  }
  keys_.access.reset();  // the raw volume key is of no more use
  rotation_ = std::make_unique<fs::Rotation>(place_.directory, keys_.keys, *keyring_, *mounted_);
  rotation_->before_new_key(
      [this](const metadata::KeyTree& next) { remember_next_key(place_, *keys_.keys, next); });
  rotation_->on_new_key([this] { remember_new_volume(place_, *keys_.keys); });
  scrubber_ = std::make_unique<fs::Scrubber>(*mounted_, keys_.superblock.volume_id,
                                             fs::ScrubberOptions{.may_name_files = may_name_files});
  tell_of_foreign_root();
  return {};
}

// Nobody else can have written to it rightly, since this process has held its lock.
Result<> OpenVolume::check_unchanged(const metadata::Database& database,
                                     const LockedState& locked) const {
  if (!locked.age) return {};
  NACRE_ASSIGN(const auto age, metadata::read_volume_age(database));
  if (age == *locked.age) return {};
  return fail(ErrorCode::rolled_back,
              fmt::format("{} is not as it was when it was locked: somebody put another state in "
                          "its place, older or of a copy. Put back the one that was there",
                          place_.path));
}

void OpenVolume::keep_age() {
  note_age(mounted_->age(), Witness::Moment::opened);
  const std::chrono::milliseconds interval(plan_.volume_options.commit_interval_ms);
  age_keeper_.emplace(
      interval, mounted_->age(), [this] { return mounted_->age(); },
      [this](const metadata::VolumeAge& age) {
        note_age(age, Witness::Moment::in_use);
        return true;
      });
  if (!outside_) return;
  // It knows nothing of this opening yet. On a thread of its own, since it may be slow.
  outside_keeper_.emplace(
      std::max(interval, outside_interval), metadata::VolumeAge(),
      [this] { return mounted_->age(); },
      [this](const metadata::VolumeAge& age) {
        return note_age_outside(age, Witness::Moment::in_use);
      });
}

// In a volume that root made, for example, an ordinary user can write nothing. What helps is not
// obvious, so the message says it.
void OpenVolume::tell_of_foreign_root() {
  if (::geteuid() == 0 || plan_.volume_options.read_only || plan_.fuse.owners.uid) return;
  const auto root = mounted_->volume().attributes(metadata::root_inode);
  if (!root || root->uid == ::geteuid() || (root->mode & (S_IWGRP | S_IWOTH)) != 0) return;
  spdlog::warn(
      "{}: its root directory belongs to user {}, so you can make nothing in it. Mount it with "
      "-o uid={} to show everything as yours, or let root give it to you",
      place_.path, root->uid, ::geteuid());
}

// An earlier change of the keyring may have left this for the next mount. The volume can be used
// without it.
void OpenVolume::mend_keyring() {
  Result<> mended;
  if (keys_.access && keys_.access->completed) {
    mended = keyring_->replace(metadata::confirm_recipient(keys_.keyring, *keys_.access));
  } else if (keys_.keyring_is_torn) {
    mended = keyring_->finish_update();
  }
  if (!mended) {
    spdlog::warn("{}: the keyring could not be brought up to date: {}", place_.path,
                 mended.error().message);
  }
}

void OpenVolume::note_age(const metadata::VolumeAge& age, Witness::Moment moment) const {
  tools::note_age(place_, keys_, keyring_->generation(), age, moment);
}

// A witness that cannot be reached holds nothing up: it is told when that begins and ends, and at
// the closing. Returns whether the witness knows it.
bool OpenVolume::note_age_outside(const metadata::VolumeAge& age, Witness::Moment moment) {
  const auto noted = tools::note_age_outside(*outside_, keys_, keyring_->generation(), age, moment);
  const bool is_closing = moment == Witness::Moment::closed;
  if (!noted && (is_closing || !outside_is_behind_)) {
    spdlog::warn(
        "{}: how far the volume has come could not be kept: {}{}", place_.path,
        noted.error().message,
        is_closing ? ". It notices an older state only as of when it was last reached" : "");
  } else if (noted && outside_is_behind_) {
    spdlog::info("{}: {} is reached again", place_.path, outside_->name());
  }
  outside_is_behind_ = !noted;
  return noted.has_value();
}

fs::ServedVolume OpenVolume::served() {
  return {.volume = mounted_->volume(),
          .kernel_cache = mounted_->kernel_cache(),
          .pacer = mounted_->compactor().pacer(),
          .block_size_bytes = keys_.superblock.chunk_size_bytes};
}

void OpenVolume::start_work() {
  scrubber_->start();
  rotation_->start();
}

void OpenVolume::stop_work() {
  scrubber_->close();
  rotation_->stop();
  mounted_->compactor().stop();
}

Result<> OpenVolume::close(LockedState* locked) {
  scrubber_->close();
  rotation_.reset();
  outside_keeper_.reset();
  age_keeper_.reset();
  const bool is_read_only = mounted_->is_read_only();
  std::optional<metadata::VolumeAge> age;
  if (locked != nullptr) {
    locked->fingerprint = keys_.keys->fingerprint();
    locked->keyring_generation = keyring_->generation();
    if (is_read_only) {
      NACRE_ASSIGN(age, metadata::read_volume_age(mounted_->database()));
    }
  }
  const auto closed = mounted_->close(locked == nullptr ? nullptr : &locked->knowledge);
  if (closed && !is_read_only) {
    age = mounted_->age();
    note_age(*age, Witness::Moment::closed);
    // While the lock is held: another mount would be told of an older state afterwards.
    if (outside_) note_age_outside(*age, Witness::Moment::closed);
  }
  if (locked != nullptr && closed) locked->age = age;
  return closed;
}

}  // namespace nacre::tools
