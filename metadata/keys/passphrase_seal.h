// SPDX-License-Identifier: Apache-2.0
// What a passphrase does for its recipient in a keyring of format 2: a value that commits to the
// passphrase, and a key that seals the volume key and the recipient's private key, if it has one.
// docs/FORMAT.md, "Passphrases", has the derivation. Internal to metadata/.
#pragma once

#include <optional>

#include "metadata/keys/keyring.h"
#include "metadata/keys/keyring_parts.h"

namespace nacre::metadata {

// public_key: the recipient's, DER; empty if it has no key pair.
RecipientSeal derive_recipient_seal(const PassphraseKeys& keys, const engine::VolumeId& volume_id,
                                    ByteView public_key);

// Gives the recipient the volume key under that seal, and takes away what another recipient of the
// volume may have wrapped with RSA, and the MAC of format 1. follows: fingerprint of the volume key
// before this one, if one is known. The recipient has a passphrase, and seal is that passphrase's.
Result<void> seal_volume_key(Recipient& recipient, const engine::VolumeId& volume_id,
                             const RecipientSeal& seal, ByteView volume_key,
                             const std::optional<engine::Sha256Digest>& follows);
// wrong_key for everything that does not open, always in the same words.
Result<SecretBytes> unseal_volume_key(const Recipient& recipient, const engine::VolumeId& volume_id,
                                      const RecipientSeal& seal);

// PKCS#8, DER.
Result<Bytes> seal_private_key(const engine::VolumeId& volume_id, const RecipientSeal& seal,
                               ByteView private_key);

// The one error of a passphrase that opens nothing, whatever the reason.
tl::unexpected<Error> passphrase_does_not_open();

}  // namespace nacre::metadata
