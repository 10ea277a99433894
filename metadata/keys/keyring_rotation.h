// SPDX-License-Identifier: Apache-2.0
// The keyrings that a rotation writes: one with which it begins, one with which it ends.
// docs/SECURITY.md, "Rotation".
//
// The first keyring has a new volume key, which is wrapped or sealed for every recipient, and a new
// epoch. All older epochs are wrapped under the new volume key too, and the old volume key is
// sealed under it. So every secret that opens this keyring opens everything in the volume. The last
// keyring has the new epoch alone.
#pragma once

#include <memory>
#include <span>

#include "metadata/keys/keyring.h"

namespace nacre::metadata {

struct KeyringRotation {
  Keyring keyring;  // generation + 1
  // The keys of that keyring, whose secrets the caller gives to the tree in use.
  std::unique_ptr<KeyTree> keys;
};
// The secrets of a rotation that is about to begin. They may be drawn before, so that data can be
// sealed under them which counts only when their keyring is there.
struct NextKeys {
  SecretBytes volume_key;
  EpochKey epoch;
  // A tree with these keys and those of keys, as the rotation will have it.
  std::unique_ptr<KeyTree> tree(const KeyTree& keys, const engine::Sha256Digest& superblock) const;
};
// format is that of the new epoch, and not below that of the last epoch. Errors: busy (a rotation
// is under way), too_big (the volume has had all its epochs).
Result<NextKeys> draw_next_keys(const Keyring& keyring, const KeyTree& keys,
                                engine::CipherSuite suite, EpochFormat format);

// Makes the keyring with which a rotation begins.
//
// keyring is verified, and is that of keys. superblock is the digest of the superblock that counts
// now (superblock_digest()). secrets were drawn for this keyring, or for one before it that had the
// same epochs.
//
// The new volume key is wrapped with public keys, which needs no recipient's secret. The MACs and
// seals of passphrases cannot be made here, so they are dropped. If the new epoch is of format 2,
// the recipients of seals get the volume key sealed instead, and those of format 1 among them
// become recipients of format 2.
//
// Errors: busy (a rotation is under way, or secrets belong to other epochs), too_big (there is no
// generation left), not_permitted (a recipient has no key pair, and none of seals is its own),
// unsupported (a recipient is of a kind that this version does not know).
Result<KeyringRotation> begin_keyring_rotation(const Keyring& keyring, const KeyTree& keys,
                                               const engine::Sha256Digest& superblock,
                                               const NextKeys& secrets,
                                               std::span<const RecipientSeal> seals = {});
// The same with secrets drawn now. Errors: also those of draw_next_keys().
Result<KeyringRotation> begin_keyring_rotation(const Keyring& keyring, const KeyTree& keys,
                                               const engine::Sha256Digest& superblock,
                                               engine::CipherSuite suite, EpochFormat format,
                                               std::span<const RecipientSeal> seals = {});
// Checks whether every recipient can be given another volume key, and makes none. Errors: as above.
Result<void> check_can_be_rotated(const Keyring& keyring, std::span<const RecipientSeal> seals);
// Returns the keyring with which a rotation ends: generation + 1, and only the last epoch. The
// argument must be verified.
Keyring end_keyring_rotation(Keyring keyring);

// In format 1, makes the missing MACs of the recipients that have this passphrase. Returns true if
// one was made; then the caller raises the generation and saves. Error: out_of_memory.
Result<bool> confirm_passphrase(Keyring& keyring, const KeyTree& keys, ByteView passphrase);

}  // namespace nacre::metadata
