// SPDX-License-Identifier: Apache-2.0
// What a passphrase gives its recipient in a keyring of format 2: a value that commits to the
// passphrase, and a key that seals the volume key and, if the recipient has a key pair, its private
// key. docs/FORMAT.md, "Passphrases", has the derivation. Internal to metadata/. Thread-safe.
#pragma once

#include <optional>

#include "metadata/keys/keyring.h"
#include "metadata/keys/keyring_parts.h"

namespace nacre::metadata {

// public_key is the recipient's, in DER; it is empty if the recipient has no key pair.
RecipientSeal derive_recipient_seal(const PassphraseKeys& keys, const engine::VolumeId& volume_id,
                                    ByteView public_key);

// Seals the volume key for the recipient. Removes the recipient's MAC of format 1, and the volume
// key that may be wrapped for its RSA key. follows is the fingerprint of the previous volume key,
// if that is known. The recipient must have a passphrase, and seal must be that passphrase's.
Result<void> seal_volume_key(Recipient& recipient, const engine::VolumeId& volume_id,
                             const RecipientSeal& seal, ByteView volume_key,
                             const std::optional<engine::Sha256Digest>& follows);
// Error: wrong_key with one and the same message, whatever it is that does not open.
Result<SecretBytes> unseal_volume_key(const Recipient& recipient, const engine::VolumeId& volume_id,
                                      const RecipientSeal& seal);

// private_key is PKCS#8 in DER.
Result<Bytes> seal_private_key(const engine::VolumeId& volume_id, const RecipientSeal& seal,
                               ByteView private_key);

// The one error for a passphrase that opens nothing, whatever the reason.
tl::unexpected<Error> passphrase_does_not_open();

}  // namespace nacre::metadata
