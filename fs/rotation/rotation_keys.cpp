// SPDX-License-Identifier: Apache-2.0
// The beginning of a rotation: the superblock that is valid under the older key, and the new
// keyring.
#include <utility>

#include "fs/rotation/rotation.h"
#include "metadata/keys/keyring_rotation.h"

namespace nacre::fs {

namespace {

bool changes_superblock(const metadata::Superblock& superblock, const RotationOptions& options) {
  return options.codec || options.suite.value_or(superblock.cipher) != superblock.cipher ||
         (options.to_format_2 && !superblock.has_format_2);
}

// Another superblock follows when the keyring is durable (settle_superblock()). A rotation that
// could not be finished is not begun.
Result<> check_superblock_generation(const metadata::Superblock& superblock, bool changes) {
  return metadata::check_generation(
      metadata::next_generation(superblock.generation + (changes ? 1 : 0)), "superblock");
}

}  // namespace

Result<> Rotation::check_is_known(const LoadedSuperblock& loaded) const {
  if (!known_superblock_ || *known_superblock_ == loaded.digest) return {};
  return fail(ErrorCode::tampered,
              "the superblock is not the one with which the volume was opened: another "
              "holder of the volume key wrote it; restore the right one from a backup");
}

Result<Rotation::LoadedSuperblock> Rotation::load_superblock() const {
  NACRE_ASSIGN(const auto found, metadata::find_superblock(*directory_));
  NACRE_ASSIGN(auto superblock, metadata::verify_superblock(found.superblock, *keys_));
  return LoadedSuperblock{.superblock = std::move(superblock),
                          .digest = metadata::superblock_digest(found.superblock),
                          .are_copies_equal = found.warnings.empty()};
}

Result<metadata::EpochFormat> Rotation::check_before(const RotationOptions& options) {
  NACRE_ASSIGN(const LoadedSuperblock loaded, load_superblock());
  NACRE_TRY(check_is_known(loaded));
  const metadata::Superblock& superblock = loaded.superblock;
  NACRE_TRY(check_superblock_generation(superblock, changes_superblock(superblock, options)));
  const bool is_format_2 = options.to_format_2 || superblock.has_format_2;
  if (is_format_2) NACRE_TRY(metadata::check_can_be_rotated(keyring_.current(), options.seals));
  return is_format_2 ? metadata::EpochFormat::two : metadata::EpochFormat::one;
}

// Makes both copies of the superblock the one that is valid under the key that is about to go.
Result<Rotation::BeforeRotation> Rotation::settle_before(const RotationOptions& options) {
  NACRE_ASSIGN(LoadedSuperblock loaded, load_superblock());
  NACRE_TRY(check_is_known(loaded));
  metadata::Superblock& superblock = loaded.superblock;
  BeforeRotation before{.superblock = loaded.digest,
                        .suite = options.suite.value_or(superblock.cipher)};
  if (options.to_format_2 || superblock.has_format_2) before.format = metadata::EpochFormat::two;
  const bool upgrades = options.to_format_2 && !superblock.has_format_2;
  const bool changes = changes_superblock(superblock, options);
  NACRE_TRY(check_superblock_generation(superblock, changes));
  if (!changes && loaded.are_copies_equal) return before;
  if (changes) {
    superblock.has_format_2 = superblock.has_format_2 || upgrades;
    superblock.cipher = before.suite;
    superblock.codec = options.codec.value_or(superblock.codec);
    superblock.level = options.codec ? options.level : superblock.level;
    superblock.generation = metadata::next_generation(superblock.generation);
  }
  NACRE_TRY(metadata::save_superblock(*directory_, superblock, *keys_));
  before.superblock = metadata::superblock_digest(superblock, *keys_);
  known_superblock_ = before.superblock;
  NACRE_TRY(mounted_.note_superblock_generation(metadata::generation_to_note(superblock)));
  return before;
}

Result<metadata::NextKeys> Rotation::draw_keys(const RotationOptions& options) {
  NACRE_ASSIGN(const LoadedSuperblock loaded, load_superblock());
  const bool is_format_2 = options.to_format_2 || loaded.superblock.has_format_2;
  return metadata::draw_next_keys(
      keyring_.current(), *keys_, options.suite.value_or(loaded.superblock.cipher),
      is_format_2 ? metadata::EpochFormat::two : metadata::EpochFormat::one);
}

Result<> Rotation::prepare_database(const metadata::NextKeys& secrets) {
  const auto next = secrets.tree(*keys_, known_superblock_.value_or(engine::Sha256Digest{}));
  return mounted_.database().prepare_switch(*next, [this]() -> Result<> {
    LockGuard lock(mutex_);
    if (!stopping_) return {};
    return fail(ErrorCode::cancelled, "the volume is closing, and no rotation of keys has begun");
  });
}

// Nothing is sealed under the new epoch before both copies are durable, except for the files of the
// database in format 2, which become valid only then.
Result<> Rotation::save_new_keyring(const RotationOptions& options, const BeforeRotation& before,
                                    const metadata::NextKeys& secrets) {
  const bool is_format_2 = before.format != metadata::EpochFormat::one;
  const auto make = [&](const metadata::Keyring& current) -> Result<metadata::KeyringRotation> {
    NACRE_ASSIGN(auto next, metadata::begin_keyring_rotation(current, *keys_, before.superblock,
                                                             secrets, options.seals));
    if (options.passphrase != nullptr && !is_format_2) {
      NACRE_ASSIGN(const bool confirmed, metadata::confirm_passphrase(next.keyring, *next.keys,
                                                                      options.passphrase->view()));
      static_cast<void>(confirmed);
    }
    return next;
  };
  const auto take = [&](const metadata::KeyringRotation& next) {
    keys_->begin_rotation(next.keys->volume_key(), next.keys->current_epoch(), before.superblock);
  };
  NACRE_TRY(keyring_.rotate(
      make, take, [&](const metadata::KeyTree& next, const std::function<Result<>()>& commit) {
        if (before_new_key_) before_new_key_(next);
        if (next.current_epoch().format == metadata::EpochFormat::one) return commit();
        return mounted_.store().switch_epoch(next.current_epoch_number(), [&] {
          return mounted_.database().switch_epoch(next, commit);
        });
      }));
  if (new_key_is_known_) new_key_is_known_();
  return {};
}

Result<> Rotation::settle_superblock() {
  NACRE_ASSIGN(const auto found, metadata::find_superblock(*directory_));
  const bool is_current =
      metadata::verify(found.superblock.seal, keys_->volume_subkey("superblock mac").view(),
                       "superblock")
          .has_value();
  if (is_current && found.warnings.empty()) {
    return mounted_.note_superblock_generation(
        metadata::generation_to_note(found.superblock.claims));
  }
  NACRE_ASSIGN(LoadedSuperblock loaded, load_superblock());
  loaded.superblock.generation = metadata::next_generation(loaded.superblock.generation);
  loaded.superblock.cipher = keys_->current_epoch().suite;
  NACRE_TRY(metadata::save_superblock(*directory_, loaded.superblock, *keys_));
  known_superblock_ = metadata::superblock_digest(loaded.superblock, *keys_);
  return mounted_.note_superblock_generation(metadata::generation_to_note(loaded.superblock));
}

}  // namespace nacre::fs
