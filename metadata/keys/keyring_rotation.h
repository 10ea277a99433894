// SPDX-License-Identifier: Apache-2.0
// The keyrings that a rotation writes: one with which it begins, one with which it ends.
// docs/SECURITY.md, "Rotation".
//
// It begins with a new volume key, wrapped for or sealed to every recipient, and a new epoch. All
// older epochs are wrapped under the new volume key too, and the old volume key is sealed under it,
// so whoever opens the keyring opens everything that is there. It ends with a keyring that has the
// new epoch alone.
#pragma once

#include <memory>
#include <span>

#include "metadata/keys/keyring.h"

namespace nacre::metadata {

struct KeyringRotation {
  Keyring keyring;                // generation + 1
  std::unique_ptr<KeyTree> keys;  // what opens it: its secrets are for the tree in use
};
// keyring: verified, and that of keys. The new volume key is wrapped with public keys, which takes
// nobody's secret; the MACs and seals of passphrases are dropped then, since they cannot be made
// here. In a new epoch of format 2 the recipients of seals get it sealed instead, and those of
// format 1 among them become recipients of format 2. busy when a rotation is under way; too_big:
// the volume has had all its epochs; not_permitted: a recipient has no key pair, and none of seals
// is its own; unsupported: one is of a kind that this version does not know.
// superblock: digest of the one that counts now (superblock_digest()). format: of the new epoch;
// not below that of the last one.
Result<KeyringRotation> begin_keyring_rotation(const Keyring& keyring, const KeyTree& keys,
                                               const engine::Sha256Digest& superblock,
                                               engine::CipherSuite suite, EpochFormat format,
                                               std::span<const RecipientSeal> seals = {});
// Whether every recipient can be given another volume key: the errors above, without making any.
Result<void> check_can_be_rotated(const Keyring& keyring, std::span<const RecipientSeal> seals);
// Of a verified keyring: generation + 1, and nothing but the last epoch.
Keyring end_keyring_rotation(Keyring keyring);

// In format 1: makes the missing MACs of the recipients that have this passphrase. True when one
// was made; then the caller raises the generation and saves. out_of_memory.
Result<bool> confirm_passphrase(Keyring& keyring, const KeyTree& keys, ByteView passphrase);

}  // namespace nacre::metadata
